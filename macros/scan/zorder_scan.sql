{#- A FROM item over a relation that reads only the files that may hold rows for which `where` is true.

    from {{ zorder_scan(ref('flights'), "tailnum = 'N14228' and time_hour >= date'2013-06-01'") }} -#}
{% macro zorder_scan(relation, where, alias=none) %}
  {#- the inputs of a unit test are CTEs, of which no catalog knows; and where dbt itself narrows a relation down (--empty,
      --sample, microbatches), it is no longer the table by its name -#}
  {%- if execute and not relation.is_cte and (relation.render is not defined or relation.render() == relation | string) -%}
    {{ return(adapter.zorder_scan_sql(relation.render() if relation.render is defined else relation, where, alias)) }}
  {%- endif -%}
  {#- what stands before a column in the predicate, stands for the relation here too -#}
  {%- set inside = alias -%}
  {%- if alias is none and relation.identifier is defined -%}
    {#- of which dbt names the CTE by more than its model -#}
    {%- set inside = adapter.quote(relation.identifier | replace('__dbt__cte__', '')) -%}
  {%- endif -%}
  (select * from {{ relation }}{{ ' as ' ~ inside if inside is not none }} where ({{ where }}
  )){{ ' as ' ~ alias if alias is not none }}
{% endmacro %}
