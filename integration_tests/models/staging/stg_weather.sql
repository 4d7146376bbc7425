select origin, time_hour, temp, wind_speed, precip, visib
from {{ source('nyc', 'weather') }}
