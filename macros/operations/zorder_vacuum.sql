{#- Delete old versions, and what failed builds left behind. A dry run by default, which says why each goes or stays:

    dbt run-operation zorder_vacuum --args '{model: orders, dry_run: false, grace_hours: 24, keep_versions: 2}'

    Without a model: all tables of the project that are built by versions. Bounds that are not given are those of the
    model. -#}
{% macro zorder_vacuum(model=none, dry_run=true, grace_hours=none, keep_versions=none) %}
  {%- set found = [] -%}
  {%- for target in (zorder_targets(model) if zorder_acts() else []) -%}
    {%- set vacuumed = adapter.zorder_vacuum(target.relation, target.node, dry_run, grace_hours, keep_versions) -%}
    {%- if dry_run or model is not none or vacuumed.deleted or vacuumed.refused -%} {#- a hook tells of what it does, run after run -#}
      {% do print(vacuumed.text) %}
    {%- endif -%}
    {% do found.append(vacuumed) %}
  {%- endfor -%}
  {%- if dry_run and zorder_acts() -%}
    {% do print('Nothing was deleted: this was a dry run, add dry_run: false to delete.') %}
  {%- endif -%}
  {{ return(found) }}
{% endmacro %}

{#- Relation and node of a model, seed or snapshot by name, of any table by `schema.identifier`, or of all those that are
    built by versions and whose schema is there. -#}
{% macro zorder_targets(name=none) %}
  {%- set found = [] -%}
  {%- for node in (graph.nodes.values() if execute else []) if node.resource_type in ('model', 'seed', 'snapshot') -%}
    {%- set place = (node.schema ~ '.' ~ node.alias) | lower if node.config.materialized != 'ephemeral' else none -%}
    {%- if name is not none and (node.name == name or place == name | lower)
          or name is none and zorder_has_versions(node) and adapter.check_schema_exists(node.database, node.schema) -%}
      {% do found.append({'relation': api.Relation.create(schema=node.schema, identifier=node.alias), 'node': node}) %}
    {%- endif -%}
  {%- endfor -%}
  {%- if name is not none and not found and execute -%}
    {% do found.append({'relation': zorder_relation(name), 'node': none}) %}
  {%- endif -%}
  {{ return(found) }}
{% endmacro %}

{#- The one target of a name: versions of a model, and models of two packages, share one. -#}
{% macro zorder_target(name) %}
  {%- set found = zorder_targets(name) -%}
  {%- if found | length > 1 -%}
    {%- set names = [] -%}
    {%- for target in found -%}
      {% do names.append(target.relation.schema ~ '.' ~ target.relation.identifier) %}
    {%- endfor -%}
    {% do exceptions.raise_compiler_error(
      "'" ~ name ~ "' is the name of " ~ found | length ~ " models: say which by one of " ~ names | sort | join(', ')
    ) %}
  {%- endif -%}
  {{ return(found[0]) }}
{% endmacro %}

{#- Whether a node is built by versions of ours: a snapshot always is, others with a zorder_by. Not in Delta and Iceberg,
    which keep their own, and not what has no table, as where a zorder_by is that of a whole folder of models. -#}
{% macro zorder_has_versions(node) %}
  {%- set given = node.config -%}
  {%- set in_parquet = (given.get('file_format') or 'parquet') | lower == 'parquet' -%}
  {%- set ordered = given.get('zorder_by') and not given.get('zorder_skip') or node.resource_type == 'snapshot' -%}
  {{ return(in_parquet and ordered and given.get('materialized') not in ('view', 'ephemeral')) }}
{% endmacro %}
