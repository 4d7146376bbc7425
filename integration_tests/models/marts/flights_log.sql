-- a first run takes the first half of the year, every run after it three months more, until the year is over
{{ config(materialized='incremental', zorder_by=['tailnum', 'time_hour'], zorder_files=4) }}

select time_hour, tailnum, carrier, origin, dest, dep_delay
from {{ ref('stg_flights') }}
{% if is_incremental() %}
where time_hour > (select max(time_hour) from {{ this }})
  and time_hour <= (select add_months(max(time_hour), 3) from {{ this }})
{% else %}
where time_hour < timestamp'2013-07-01 00:00:00'
{% endif %}
