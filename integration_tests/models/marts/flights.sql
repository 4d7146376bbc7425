{{ config(zorder_by=['tailnum', 'time_hour'], zorder_files=16) }}

select
    f.*,
    a.name as airline,
    p.manufacturer,
    p.seats
from {{ ref('stg_flights') }} as f
left join {{ source('nyc', 'airlines') }} as a on f.carrier = a.carrier
left join {{ source('nyc', 'planes') }} as p on f.tailnum = p.tailnum
