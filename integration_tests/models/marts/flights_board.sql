-- flights as an airport's board shows them; each run moves its clock on by a week
-- a run inserts the flights of the next week, and updates those that have left since the last run by their delays
{{ config(
    materialized='incremental', incremental_strategy='merge', unique_key=['carrier', 'flight', 'time_hour'],
    zorder_by=['time_hour', 'tailnum'], zorder_files=16
) }}

with clock as (
{% if is_incremental() %}
    select max(time_hour) as now from {{ this }}
{% else %}
    select timestamp'2013-10-01 00:00:00' as now
{% endif %}
)

select time_hour, carrier, flight, tailnum, origin, dest, if(time_hour <= now, dep_delay, null) as dep_delay
from {{ ref('stg_flights') }} cross join clock
where time_hour <= now + interval 7 days
{% if is_incremental() %}
    and time_hour > now - interval 14 days
{% endif %}
