{#- Delete old versions, and the remains of failed builds. The default is a dry run, which prints the reason why each
    version is deleted or stays:

    dbt run-operation zorder_vacuum --args '{model: orders, dry_run: false, grace_hours: 24, keep_versions: 2}'

    Without a model, vacuum all tables of the project that have versions. grace_hours and keep_versions default to the
    model's settings. -#}
{% macro zorder_vacuum(model=none, dry_run=true, grace_hours=none, keep_versions=none) %}
  {%- set found = [] -%}
  {%- for target in (zorder_targets(model) if zorder_acts() else []) -%}
    {%- set vacuumed = adapter.zorder_operations().vacuum(target.relation, target.node, dry_run, grace_hours, keep_versions) -%}
    {%- if dry_run or model is not none or vacuumed.deleted or vacuumed.refused -%} {#- a hook runs every time, and must print changes only -#}
      {% do print(vacuumed.text) %}
    {%- endif -%}
    {% do found.append(vacuumed) %}
  {%- endfor -%}
  {%- if dry_run and zorder_acts() -%}
    {% do print('Nothing was deleted: this was a dry run, add dry_run: false to delete.') %}
  {%- endif -%}
  {{ return(found) }}
{% endmacro %}

{#- Return relation and node of a model, seed or snapshot by name, or of any table by `schema.identifier`. Without a name,
    return those of all nodes that have versions and whose schema exists, in `any_format` also of other z-ordered nodes. -#}
{% macro zorder_targets(name=none, any_format=false) %}
  {%- set found = [] -%}
  {%- for node in (graph.nodes.values() if execute else []) if node.resource_type in ('model', 'seed', 'snapshot') -%}
    {%- set place = (node.schema ~ '.' ~ node.alias) | lower if node.config.materialized != 'ephemeral' else none -%}
    {%- if name is not none and (node.name == name or place == name | lower)
          or name is none and zorder_has_versions(node, any_format) and adapter.check_schema_exists(node.database, node.schema) -%}
      {% do found.append({'relation': api.Relation.create(schema=node.schema, identifier=node.alias), 'node': node}) %}
    {%- endif -%}
  {%- endfor -%}
  {%- if name is not none and not found and execute -%}
    {% do found.append({'relation': zorder_relation(name), 'node': none}) %}
  {%- endif -%}
  {{ return(found) }}
{% endmacro %}

{#- Return the only target of a name, and raise if there are several. Versions of a model share its name, and so may
    models of two packages. -#}
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

{#- Return whether a node has versions managed by this package. On Parquet, snapshots always have, and other nodes have
    with zorder_by. Delta and Iceberg manage their own. Views and ephemeral models have none, even if they inherit
    zorder_by from their folder. In `any_format`, count other nodes with zorder_by too. -#}
{% macro zorder_has_versions(node, any_format=false) %}
  {%- set given = node.config -%}
  {%- set in_parquet = (given.get('file_format') or 'parquet') | lower == 'parquet' -%}
  {%- set ordered = given.get('zorder_by') and not given.get('zorder_skip') -%}
  {%- set managed = in_parquet and (ordered or node.resource_type == 'snapshot') or any_format and ordered -%}
  {{ return(managed and given.get('materialized') not in ('view', 'ephemeral')) }}
{% endmacro %}
