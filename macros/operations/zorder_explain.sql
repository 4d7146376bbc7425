{#- Print the files that a pruned read of a model reads, and the files that each part of the predicate excludes:

    dbt run-operation zorder_explain --args "{model: flights, where: \"tailnum in ('N14228', 'N730MQ')\"}"

With ``sql``, print for each z-ordered table in a statement the files that it reads, and what excludes the others:

    dbt run-operation zorder_explain --args "{sql: \"select * from {{ ref('flights') }} where tailnum = 'N14228'\"}" -#}
{% macro zorder_explain(model=none, where=none, sql=none) %}
  {%- if (sql is none) == (model is none or where is none) -%}
    {% do exceptions.raise_compiler_error("zorder_explain needs either a model and where, or sql.") %}
  {%- endif -%}
  {%- set relation = zorder_relation(model) if sql is none else none -%}
  {%- if execute -%}
    {%- set operations = adapter.zorder_operations() -%}
    {%- set found = operations.explain(relation, where) if sql is none else operations.explain_sql(render(sql)) -%}
    {% do print(found.text) %}
    {{ return(found) }}
  {%- endif -%}
{% endmacro %}

{#- Return the relation of a model by name, or of any table by `schema.identifier`. -#}
{% macro zorder_relation(name) %}
  {%- set parts = name.split('.') -%}
  {%- if parts | length == 1 -%}
    {{ return(zorder_of_model(name)) }}
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

{#- Return the relation of a model by name, also of a private model. Among several versions, return the latest. In a hook,
    a model may name itself. -#}
{% macro zorder_of_model(name) %}
  {%- set found, names = [], [] -%}
  {%- for node in (graph.nodes.values() if execute else []) if node.resource_type in ('model', 'seed', 'snapshot') -%}
    {% do names.append(node.name) %}
    {%- if node.name == name and node.get('version') == node.get('latest_version') -%}
      {% do found.append(api.Relation.create(schema=node.schema, identifier=node.alias)) %}
    {%- endif -%}
  {%- endfor -%}
  {%- if execute and name not in names -%}
    {% do adapter.zorder_operations().raise_no_node(name, names) %}
  {%- endif -%}
  {%- if found | length == 1 -%}
    {{ return(found[0]) }}
  {%- endif -%}
  {%- if execute or model is not defined or model.name != name -%}
    {{ return(builtins.ref(name)) }}
  {%- endif -%}
{% endmacro %}
