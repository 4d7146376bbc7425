-- every flight of the source is in the z-ordered table, once
select 'missing' as problem, count(*) as flights
from (select count(*) as n from {{ source('nyc', 'flights') }})
join (select count(*) as m from {{ ref('flights') }}) on n != m
having count(*) > 0
