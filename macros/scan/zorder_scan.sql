{#- A FROM item over a relation that reads only the files that may hold rows for which `where` is true.

    from {{ zorder_scan(ref('flights'), "tailnum = 'N14228' and time_hour >= date'2013-06-01'") }} -#}
{% macro zorder_scan(relation, where, alias=none) %}
  {#- the inputs of a unit test are CTEs, of which no catalog knows -#}
  {%- if execute and not relation.is_cte -%}
    {{ return(adapter.zorder_scan_sql(relation.render() if relation.render is defined else relation, where, alias)) }}
  {%- endif -%}
  (select * from {{ relation }} where ({{ where }}
  )){{ ' as ' ~ alias if alias is not none }}
{% endmacro %}
