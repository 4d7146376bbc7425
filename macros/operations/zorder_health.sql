{#- Print how well the files of a table serve queries, and what a rewrite would change, from statistics and footers alone:

    dbt run-operation zorder_health --args '{model: orders}'

    `columns` names the columns to examine, for a table that is not z-ordered:

    dbt run-operation zorder_health --args '{model: raw.events, columns: [customer_id, event_ts]}' -#}
{% macro zorder_health(model, columns=none) %}
  {%- if zorder_acts() -%}
    {%- set target = zorder_target(model) -%}
    {%- set found = adapter.zorder_operations().health(target.relation, target.node, columns) -%}
    {% do print(found.text) %}
    {{ return(found) }}
  {%- endif -%}
{% endmacro %}
