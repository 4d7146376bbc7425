{#- Show what a pruned read of a model reads, and what each part of the predicate excludes:

    dbt run-operation zorder_explain --args '{model: flights, where: "tailnum = ''N14228''"}' -#}
{% macro zorder_explain(model, where) %}
  {%- set found = adapter.zorder_explain(zorder_relation(model), where) -%}
  {% do print(found.text) %}
  {{ return(found) }}
{% endmacro %}

{#- The relation of a model by name, or of any table by `schema.identifier`. -#}
{% macro zorder_relation(name) %}
  {%- if '.' in name -%}
    {%- set parts = name.split('.') -%}
    {{ return(api.Relation.create(schema=parts[0], identifier=parts[1])) }}
  {%- endif -%}
  {{ return(builtins.ref(name)) }}
{% endmacro %}
