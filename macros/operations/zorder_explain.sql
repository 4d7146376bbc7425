{#- Show what a pruned read of a model reads, and what each part of the predicate excludes:

    dbt run-operation zorder_explain --args "{model: flights, where: \"tailnum in ('N14228', 'N730MQ')\"}" -#}
{% macro zorder_explain(model, where) %}
  {%- set found = adapter.zorder_explain(zorder_relation(model), where) -%}
  {%- if execute -%}{% do print(found.text) %}{%- endif -%}
  {{ return(found) }}
{% endmacro %}

{#- The relation of a model by name, or of any table by `schema.identifier`. -#}
{% macro zorder_relation(name) %}
  {%- set parts = name.split('.') -%}
  {%- if parts | length == 1 -%}
    {{ return(builtins.ref(name)) }}
  {%- endif -%}
  {%- if parts | length > 2 or '' in parts -%}
    {%- set nearest = parts | select | list -%}
    {% do exceptions.raise_compiler_error(
      "'" ~ name ~ "' is neither the name of a model nor a table as schema.identifier, in the session's own catalog. "
      ~ "Did you mean '" ~ nearest[-2:] | join('.') ~ "'?"
    ) %}
  {%- endif -%}
  {{ return(api.Relation.create(schema=parts[0], identifier=parts[1])) }}
{% endmacro %}
