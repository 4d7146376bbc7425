{#- Rebuild the stats of a table from its current files:

    dbt run-operation zorder_rebuild_stats --args '{model: flights}' -#}
{% macro zorder_rebuild_stats(model, columns=none) %}
  {%- set relation = zorder_relation(model) -%}
  {%- if zorder_acts() -%}
    {%- set files = adapter.zorder_operations().rebuild_stats(relation, columns) -%}
    {% do log('Stats of ' ~ relation ~ ': ' ~ files ~ ' files', info=True) %}
  {%- endif -%}
{% endmacro %}
