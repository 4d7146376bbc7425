-- short pages, which rows are ordered for: a reader of one route skips most of a file; v2 makes files smaller
-- dest has 105 values and origin 3: see "How far it can go" in docs/explanation/how-it-works.md
{{ config(zorder_by=['dest', 'scheduled_at', 'origin'], zorder_files=8, zorder_stats_columns=['carrier'],
    options={'parquet.page.row.count.limit': 2000, 'parquet.writer.version': 'v2'}) }}

select * from {{ ref('stg_flights') }}
