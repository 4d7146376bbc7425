-- reads 1 or 2 of the 16 files of flights
select tailnum, time_hour, origin, dest, dep_delay, arr_delay
from {{ zorder_scan(ref('flights'), "tailnum = 'N14228' and time_hour >= timestamp'2013-06-01 00:00:00'") }}
