{#- Make the previous version current again, or the version of a given name (zorder_vacuum lists the names):

    dbt run-operation zorder_rollback --args '{model: orders}'

    The version that was current until now stays. zorder_vacuum deletes it later like any other. -#}
{% macro zorder_rollback(model, version=none) %}
  {%- if zorder_acts() -%}
    {%- set target = zorder_target(model) -%}
    {%- set names = adapter.zorder_operations().rollback(target.relation, version) -%}
    {% do print(target.relation ~ ' is served from ' ~ names[1] ~ ' again, and from ' ~ names[0] ~ ' no longer') %}
    {{ return(names) }}
  {%- endif -%}
{% endmacro %}
