-- whatever number of runs it took, the board has each flight up to its latest hour once, with its delay if it left a week before
with newest as (select max(time_hour) as hour from {{ ref('flights_board') }}),

expected as (
    select time_hour, carrier, flight, tailnum, origin, dest, if(time_hour <= hour - interval 7 days, dep_delay, null) as dep_delay
    from {{ ref('stg_flights') }} join newest on time_hour <= hour
),

found as (
    select time_hour, carrier, flight, tailnum, origin, dest, if(time_hour <= hour - interval 7 days, dep_delay, null) as dep_delay
    from {{ ref('flights_board') }} cross join newest
)

(select * from expected except all select * from found)
union all
(select * from found except all select * from expected)
