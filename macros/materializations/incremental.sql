{#- An incremental model with zorder_by: the first run and a full refresh build a version as a table model does; every
    other run adds its rows to that version, clustered by the version's own tree. Without zorder_by it is dbt-spark's. -#}
{% materialization incremental, adapter='spark_zorder', supported_languages=['sql', 'python'] %}
  {%- set settings = adapter.zorder_settings(model) -%}
  {%- if settings is none -%}
    {{ return(materialization_incremental_spark()) }}
  {%- endif -%}

  {%- set batch = zorder_batch() -%}
  {%- set old_relation = load_cached_relation(this) -%}
  {%- set target_relation = this.incorporate(type='table') -%}
  {%- set is_first = old_relation is none or old_relation.is_view or should_full_refresh() -%}

  {{ run_hooks(pre_hooks) }}

  {%- if is_first -%}
    {%- set response = zorder_build_model(settings, target_relation, compiled_code) -%}
  {%- else -%}
    {%- set response = zorder_increment_model(settings, target_relation, compiled_code, batch) -%}
  {%- endif -%}
  {% do store_result('main', response=response) %}

  {% do apply_grants(target_relation, config.get('grants'), should_revoke(old_relation, full_refresh_mode=is_first)) %}

  {{ run_hooks(post_hooks) }}

  {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}
