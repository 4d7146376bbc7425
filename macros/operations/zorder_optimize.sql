{#- Rebuild a table from its own rows, by the model's zorder settings. The default is a dry run, which only reports the
    effect:

    dbt run-operation zorder_optimize --args '{model: flights, dry_run: false}'

    With `zorder_by`, compact and cluster any Parquet table that no model with zorder_by builds:

    dbt run-operation zorder_optimize --args '{model: raw.events, zorder_by: [customer_id, event_ts], dry_run: false}' -#}
{% macro zorder_optimize(model, dry_run=true, zorder_by=none, file_size=none) %}
  {%- if zorder_acts() -%}
    {%- set target = zorder_target(model) -%}
    {%- set operations = adapter.zorder_operations() -%}
    {%- set found = operations.optimize(target.relation, target.node, dry_run, zorder_by, file_size) -%}
    {% do print(found.text) %}
    {{ return(found) }}
  {%- endif -%}
{% endmacro %}
