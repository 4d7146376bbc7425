-- columns may be structs, arrays and maps, and a leaf of a struct may be clustered by, here along Hilbert's curve
{{ config(zorder_by=['tailnum', 'day', 'first.dest'], zorder_curve='hilbert', zorder_files=8) }}

select
    tailnum,
    to_date(time_hour) as day,
    min_by(struct(origin, dest, time_hour), time_hour) as first,
    sort_array(collect_list(struct(time_hour, origin, dest, dep_delay))) as flights
from {{ ref('flights') }}
where tailnum is not null
group by tailnum, to_date(time_hour)
