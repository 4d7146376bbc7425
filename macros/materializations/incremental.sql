{#- Build an incremental model with zorder_by. The first run and a full refresh build a version, like a table model. Every
    other run adds its rows to that version, clustered by the version's own tree. Without zorder_by, run dbt-spark's
    steps, and leave nothing behind in the session. -#}
{% materialization incremental, adapter='spark_zorder', supported_languages=['sql', 'python'] %}
  {%- set settings = adapter.zorder_settings(model) -%}
  {%- if settings is none and model.language == 'sql' and not adapter.zorder_in_process() -%}
    {{ return(materialization_incremental_spark()) }}
  {%- endif -%}

  {%- set batch = zorder_batch((config.get('file_format') or 'parquet') | lower, settings) -%}
  {%- set by_statement = batch.strategy == 'merge' and (settings is none or settings.file_format != 'parquet') -%}
  {%- set old_relation = load_cached_relation(this) if settings is not none else load_relation(this) -%}
  {%- set target_relation = this.incorporate(type='table') -%}
  {%- set is_first = old_relation is none or old_relation.is_view or should_full_refresh() -%}

  {{ zorder_pre_hooks(settings is not none and not is_first and not by_statement) }}

  {%- if settings is none and is_first -%}
    {%- if not should_full_refresh() -%}{% do adapter.zorder_check_absent(this) %}{%- endif -%}
    {% do zorder_create_plain(old_relation, target_relation, zorder_model_sql()) %}
  {%- elif settings is none -%}
    {% do zorder_increment_plain(old_relation, target_relation, batch) %}
  {%- elif is_first -%}
    {% do store_result('main', response=zorder_build_model(
        settings, target_relation, zorder_model_sql(), not should_full_refresh())) %}
  {%- elif by_statement -%}
    {% do store_result('main', response=zorder_merge_model(settings, old_relation, target_relation, batch)) %}
  {%- else -%}
    {% do store_result('main', response=zorder_increment_model(settings, target_relation, zorder_model_sql(), batch)) %}
  {%- endif -%}

  {% do apply_grants(target_relation, config.get('grants'), should_revoke(old_relation, full_refresh_mode=is_first)) %}

  {%- if settings is none -%}
    {% do persist_docs(target_relation, model) %}
  {%- endif -%}

  {{ run_hooks(post_hooks) }}

  {%- if old_relation is not none and old_relation.is_view -%}
    {% do adapter.zorder_remember(target_relation) %}
  {%- endif -%}
  {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}
