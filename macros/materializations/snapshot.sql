{#- Build a snapshot on Parquet: write the changes from dbt's own query, together with the existing rows, into a new
    version, and swap that in. Other file formats use dbt-spark's materialization, which merges. -#}
{% materialization snapshot, adapter='spark_zorder' %}
  {% do adapter.zorder_check_name(model) %}
  {%- if (config.get('file_format') or 'parquet') | lower != 'parquet' -%}
    {{ return(materialization_snapshot_spark()) }}
  {%- endif -%}

  {%- set settings = adapter.zorder_settings(model) -%}
  {%- set old_relation = load_cached_relation(this) -%}
  {%- set target_relation = this.incorporate(type='table') -%}
  {%- if old_relation is not none and not old_relation.is_table -%}
    {% do exceptions.relation_wrong_type(old_relation, 'table') %}
  {%- endif -%}

  {{ run_hooks(pre_hooks, inside_transaction=False) }}
  {{ run_hooks(pre_hooks, inside_transaction=True) }}

  {%- set response = zorder_snapshot_model(settings, target_relation, old_relation is not none) -%}
  {% do store_result('main', response=response) %}

  {% do apply_grants(target_relation, config.get('grants'), should_revoke(old_relation, full_refresh_mode=False)) %}
  {% do persist_docs(target_relation, model) %}

  {{ run_hooks(post_hooks, inside_transaction=True) }}
  {{ run_hooks(post_hooks, inside_transaction=False) }}

  {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}

{#- Build a snapshot's first version, or the next one. Return the adapter response. -#}
{% macro zorder_snapshot_model(settings, relation, exists) %}
  {%- set columns = config.get('snapshot_table_column_names') or get_snapshot_table_column_names() -%}
  {%- set strategy_macro = strategy_dispatch(config.get('strategy')) -%}
  {%- set strategy = strategy_macro(model, 'snapshotted_data', 'source_data', model['config'], exists) -%}
  {%- if exists -%}
    {% do adapter.assert_valid_snapshot_target_given_strategy(relation, columns, strategy) %}
    {%- set sql = snapshot_staging_table(strategy, model['compiled_code'], relation) -%}
  {%- else -%}
    {%- set sql = build_snapshot_table(strategy, model['compiled_code']) -%}
  {%- endif -%}
  {% do check_time_data_types(sql) %}
  {{ write(sql) }}
  {{ return(adapter.zorder_snapshot(
      settings, relation, sql, model, columns, exists
  )) }}
{% endmacro %}
