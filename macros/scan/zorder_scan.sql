{#- Return a FROM item over a relation that reads only the files that may contain rows matching `where`.

    from {{ zorder_scan(ref('flights'), "tailnum = 'N14228' and time_hour >= date'2013-06-01'") }} -#}
{% macro zorder_scan(relation, where, alias=none) %}
  {#- The inputs of a unit test are CTEs, which no catalog contains. If dbt itself filters a relation (--empty, --sample,
      microbatches), its text is a query in place of the table's name. -#}
  {%- if execute and not relation.is_cte and (relation.render is not defined or relation.render() == relation | string) -%}
    {{ return(adapter.zorder_scan_sql(relation.render() if relation.render is defined else relation, where, alias)) }}
  {%- endif -%}
  {#- The inner relation needs the name by which the predicate qualifies columns. -#}
  {%- set inside = alias -%}
  {%- if alias is none and relation.identifier is defined -%}
    {#- dbt prefixes the CTE of an ephemeral model. -#}
    {%- set inside = adapter.quote(relation.identifier | replace('__dbt__cte__', '')) -%}
  {%- endif -%}
  (select * from {{ relation }}{{ ' as ' ~ inside if inside is not none }} where ({{ where }}
  )){{ ' as ' ~ alias if alias is not none }}
{% endmacro %}
