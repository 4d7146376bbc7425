{#- Serve the version before again, or one by its name (zorder_vacuum lists them):

    dbt run-operation zorder_rollback --args '{model: orders}'

    The version that was served till now stays, and is collected later as any other. -#}
{% macro zorder_rollback(model, version=none) %}
  {%- if zorder_acts() -%}
    {%- set target = zorder_target(model) -%}
    {%- set names = adapter.zorder_rollback(target.relation, version) -%}
    {% do print(target.relation ~ ' is served from ' ~ names[1] ~ ' again, and from ' ~ names[0] ~ ' no longer') %}
    {{ return(names) }}
  {%- endif -%}
{% endmacro %}
