-- the same rows by ORDER BY, in as many files: what the demo compares with; the hook keeps stats of a plain Parquet table
{{ config(post_hook="{{ zorder_stats(this, ['tailnum', 'time_hour']) }}") }}

select /*+ repartition_by_range(16, tailnum, time_hour) */ *
from {{ ref('flights') }}
sort by tailnum, time_hour
