-- the same rows by ORDER BY, in as many files: what the demo compares with
select /*+ repartition_by_range(16, tailnum, time_hour) */ *
from {{ ref('flights') }}
sort by tailnum, time_hour
