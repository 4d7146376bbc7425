{#- Compare tables with their stats: listing, sizes, row counts, footers, minima and maxima. Raise if anything differs:

    dbt run-operation zorder_verify --args '{model: orders}'

    Without a model, verify all tables of the project that have versions. This reads all rows of the stats columns. -#}
{% macro zorder_verify(model=none) %}
  {%- set wrong = [] -%}
  {%- for target in zorder_targets(model) -%}
    {%- set relation = target.relation -%}
    {%- set there = adapter.get_relation(none, relation.schema, relation.identifier) if model is none else relation -%}
    {%- if not there or there.is_view -%}
      {% do print(relation ~ (' is a view' if there else ' is not built') ~ ' here: nothing to verify') %}
    {%- else -%}
      {%- set verified = adapter.zorder_operations().verify(relation) -%}
      {%- if verified.findings -%}{% do wrong.append(verified.text) %}{%- else -%}{% do print(verified.text) %}{%- endif -%}
    {%- endif -%}
  {%- endfor -%}
  {%- if wrong -%}
    {% do exceptions.raise_compiler_error('zorder_verify: ' ~ wrong | join('\n')) %}
  {%- endif -%}
{% endmacro %}
