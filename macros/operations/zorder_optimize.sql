{#- Rebuild a table from its own rows, by the model's zorder settings. The default is a dry run, which only reports the
    effect:

    dbt run-operation zorder_optimize --args '{model: flights, dry_run: false}' -#}
{% macro zorder_optimize(model, dry_run=true) %}
  {%- if zorder_acts() -%}
    {%- set target = zorder_target(model) -%}
    {%- set found = adapter.zorder_operations().optimize(target.relation, target.node, dry_run) -%}
    {% do print(found.text) %}
    {{ return(found) }}
  {%- endif -%}
{% endmacro %}
