-- whatever number of runs it took, the log has the flights up to its latest hour, each as often as the source has it
with newest as (select max(time_hour) as hour from {{ ref('flights_log') }}),

expected as (select count(*) as n from {{ ref('stg_flights') }} join newest on time_hour <= newest.hour),

found as (select count(*) as n from {{ ref('flights_log') }})

select expected.n as expected, found.n as found from expected cross join found where expected.n <> found.n
