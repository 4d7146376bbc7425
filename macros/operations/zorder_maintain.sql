{#- Maintain all z-ordered tables of the project: rewrite those that gain, delete old versions, verify. The default is a dry
    run, which only reports:

    dbt run-operation zorder_maintain --args '{dry_run: false, budget_bytes: 100GB, budget_minutes: 60}'

    `models` names a part of them. A table that fails does not stop the others; with `strict`, the operation then fails at
    its end. -#}
{% macro zorder_maintain(models=none, dry_run=true, budget_bytes=none, budget_minutes=none, strict=false) %}
  {%- if zorder_acts() -%}
    {%- set targets = zorder_targets(none, true) if models is none else [] -%}
    {%- for name in ([models] if models is string else models or []) -%}
      {% do targets.extend(zorder_targets(name)) %}
    {%- endfor -%}
    {%- set found = adapter.zorder_operations().maintain(targets, dry_run, budget_bytes, budget_minutes, strict) -%}
    {% do print(found.text) %}
    {%- if strict and found.failed -%}
      {% do exceptions.raise_compiler_error('zorder_maintain: ' ~ found.failed | join('\n')) %}
    {%- endif -%}
    {{ return(found) }}
  {%- endif -%}
{% endmacro %}
