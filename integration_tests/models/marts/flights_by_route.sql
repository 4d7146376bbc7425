-- dest has 105 values and origin 3: see the README on columns of few distinct values
{{ config(zorder_by=['dest', 'scheduled_at', 'origin'], zorder_files=8, zorder_stats_columns=['carrier']) }}

select * from {{ ref('stg_flights') }}
