{#- Delete old versions, and what failed builds left behind. A dry run by default, which says why each goes or stays:

    dbt run-operation zorder_vacuum --args '{model: orders, dry_run: false, grace_hours: 24, keep_versions: 2}'

    Without a model: all models of the project with a zorder_by. Bounds that are not given are those of the model. -#}
{% macro zorder_vacuum(model=none, dry_run=true, grace_hours=none, keep_versions=none) %}
  {%- set found = [] -%}
  {%- for target in zorder_targets(model) -%}
    {%- set vacuumed = adapter.zorder_vacuum(target.relation, target.node, dry_run, grace_hours, keep_versions) -%}
    {% do print(vacuumed.text) %}
    {% do found.append(vacuumed) %}
  {%- endfor -%}
  {%- if dry_run -%}
    {% do print('Nothing was deleted: this was a dry run, add dry_run: false to delete.') %}
  {%- endif -%}
  {{ return(found) }}
{% endmacro %}

{#- Relation and node of a model by name, of any table by `schema.identifier`, or of all models with a zorder_by. -#}
{% macro zorder_targets(name=none) %}
  {%- set found = [] -%}
  {%- for node in graph.nodes.values() if execute and node.resource_type == 'model' -%}
    {%- if node.name == name or (name is none and zorder_has_versions(node)) -%}
      {% do found.append({'relation': api.Relation.create(schema=node.schema, identifier=node.alias), 'node': node}) %}
    {%- endif -%}
  {%- endfor -%}
  {%- if name is not none and not found and execute -%}
    {% do found.append({'relation': zorder_relation(name), 'node': none}) %}
  {%- endif -%}
  {{ return(found) }}
{% endmacro %}

{#- Whether a model is z-ordered by versions of ours: Delta and Iceberg keep their own. -#}
{% macro zorder_has_versions(node) %}
  {%- set file_format = (node.config.get('file_format') or 'parquet') | lower -%}
  {{ return(node.config.get('zorder_by') and not node.config.get('zorder_skip') and file_format == 'parquet') }}
{% endmacro %}
