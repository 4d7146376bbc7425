{#- Fail for every figure of a table's health that exceeds its limit: `max_depth`, `max_small_files`, `max_new_files` or
    `max_without_stats`. Without limits, fail if a rewrite would gain. `columns` names the columns to examine. -#}
{% test zorder_healthy(model, columns=none) %}
  {%- set wrong = zorder_exceeded(model, columns, kwargs) if zorder_tests_run() else [] -%}
  select what, found, allowed
  from (
    select cast(null as string) as what, cast(null as double) as found, cast(null as double) as allowed
    {%- for one in wrong %}
    union all select {{ adapter.zorder_quote(one.what) }}, {{ one.found }}D, {{ one.allowed }}D
    {%- endfor %}
  )
  where what is not null
{% endtest %}

{#- Return the figures of a relation's health that exceed their limits, by the settings of the model that builds it. -#}
{% macro zorder_exceeded(relation, columns, limits) %}
  {%- set node = none if relation is string else zorder_target(relation.schema ~ '.' ~ relation.identifier).node -%}
  {{ return(adapter.zorder_operations().unhealthy(relation, node, columns, limits)) }}
{% endmacro %}
