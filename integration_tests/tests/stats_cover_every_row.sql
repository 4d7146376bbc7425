-- the stats table has one row a file, and together they count every row
select s.files, s.counted, f.expected
from (select count(*) as files, sum(row_count) as counted from {{ ref('flights') }}__zorder_stats) as s
cross join (select count(*) as expected from {{ ref('flights') }}) as f
where s.counted != f.expected or s.files != 16
