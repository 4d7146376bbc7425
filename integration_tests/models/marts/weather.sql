-- small enough for one file, which is then sorted along the curve
{{ config(zorder_by='time_hour') }}

select * from {{ ref('stg_weather') }}
