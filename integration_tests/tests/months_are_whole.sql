-- whatever number of runs it took, each month has the flights that the source has of it
select month, sum(flights) as too_many
from (
    select month, count(*) as flights from {{ ref('flights_by_month') }} group by month
    union all
    select date_format(time_hour, 'yyyy-MM'), -count(*) from {{ ref('stg_flights') }} group by 1
)
group by month
having sum(flights) <> 0
