{#- Compare tables with their stats: listing, sizes, row counts, footers, bounds. Fails if anything does not agree:

    dbt run-operation zorder_verify --args '{model: orders}'

    Without a model: all tables of the project that are built by versions. All rows of the stats columns are read. -#}
{% macro zorder_verify(model=none) %}
  {%- set wrong = [] -%}
  {%- for target in zorder_targets(model) -%}
    {%- set relation = target.relation -%}
    {%- if model is none and not adapter.get_relation(none, relation.schema, relation.identifier) -%}
      {% do print(relation ~ ' is not built here: nothing to verify') %}
    {%- else -%}
      {%- set verified = adapter.zorder_verify(relation) -%}
      {% do print(verified.text) %}
      {%- if verified.findings -%}{% do wrong.append(verified.text) %}{%- endif -%}
    {%- endif -%}
  {%- endfor -%}
  {%- if wrong -%}
    {% do exceptions.raise_compiler_error('zorder_verify: ' ~ wrong | join('\n')) %}
  {%- endif -%}
{% endmacro %}
