-- a hash index: plain SQL of any session finds a plane in one bucket, and joins by tailnum without a shuffle
{{ config(zorder_by=['dest', 'time_hour'], zorder_files=8, clustered_by='tailnum', buckets=4) }}

select * from {{ ref('flights') }}
