-- a partition a month; a run replaces those that it has rows of, here the newest two, and no others
-- filters on planes count twice as much as those on destinations, and have a bloom filter in each file besides
{{ config(
    materialized='incremental', incremental_strategy='insert_overwrite', partition_by=['month'],
    on_schema_change='append_new_columns',
    zorder_by=['tailnum', 'dest'], zorder_weights={'tailnum': 2, 'dest': 1}, zorder_files=4,
    zorder_bloom=['tailnum']
) }}

select tailnum, dest, origin, carrier, time_hour, dep_delay, date_format(time_hour, 'yyyy-MM') as month
from {{ ref('stg_flights') }}
{% if is_incremental() %}
where time_hour >= (select add_months(to_date(max(month), 'yyyy-MM'), -1) from {{ this }})
{% endif %}
