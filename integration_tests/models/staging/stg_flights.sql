select
    time_hour,
    tailnum,
    carrier,
    cast(flight as int) as flight,
    origin,
    dest,
    cast(dep_delay as int) as dep_delay,
    cast(arr_delay as int) as arr_delay,
    cast(air_time as int) as air_time,
    cast(distance as int) as distance,
    make_timestamp(year, month, day, hour, minute, 0) as scheduled_at
from {{ source('nyc', 'flights') }}
