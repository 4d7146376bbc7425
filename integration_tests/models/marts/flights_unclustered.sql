-- the same rows as they come, in as many files: what the demo compares with
select /*+ repartition(16) */ * from {{ ref('flights') }}
