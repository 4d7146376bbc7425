-- a model without zorder_by is built as dbt-spark builds it
select airline, count(*) as flights, avg(arr_delay) as mean_arr_delay
from {{ ref('flights') }}
group by airline
