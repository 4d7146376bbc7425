-- a run reads only the new files of flights_log: under zorder_prune: true, dbt runs the subquery first
{{ config(materialized='incremental') }}

select time_hour, count(*) as flights, avg(dep_delay) as mean_dep_delay
from {{ ref('flights_log') }}
{% if is_incremental() %}
where time_hour > (select max(time_hour) from {{ this }})
{% endif %}
group by time_hour
