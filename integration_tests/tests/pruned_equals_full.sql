-- a pruned read gives the rows of a full read
{% set where = "tailnum = 'N14228' and time_hour >= timestamp'2013-06-01 00:00:00'" %}
with pruned as (select * from {{ zorder_scan(ref('flights'), where) }}),
     full_read as (select * from {{ ref('flights') }} where {{ where }})
(select * from pruned except all select * from full_read)
union all
(select * from full_read except all select * from pruned)
