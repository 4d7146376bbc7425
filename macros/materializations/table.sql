{#- Build a table with zorder_by into a new version beside the current one, and swap it in by one catalog call.
    An SQL model without zorder_by is built by dbt-spark's own materialization. -#}
{% materialization table, adapter='spark_zorder', supported_languages=['sql', 'python'] %}
  {%- set settings = adapter.zorder_settings(model) -%}
  {%- if settings is none and model.language == 'sql' -%}
    {{ return(materialization_table_spark()) }}
  {%- endif -%}

  {%- set old_relation = load_cached_relation(this) -%}
  {%- set target_relation = this.incorporate(type='table') -%}

  {{ run_hooks(pre_hooks) }}

  {%- set sql = zorder_model_sql() -%}
  {%- if settings is none -%}
    {% do zorder_create_plain(old_relation, target_relation, sql) %}
  {%- else -%}
    {%- set response = zorder_build_model(settings, target_relation, sql) -%}
    {% do store_result('main', response=response) %}
  {%- endif -%}

  {% do apply_grants(target_relation, config.get('grants'), should_revoke(old_relation, full_refresh_mode=True)) %}

  {%- if settings is none -%}
    {% do persist_docs(target_relation, model) %}
  {%- endif -%}

  {{ run_hooks(post_hooks) }}

  {%- if old_relation is not none and old_relation.is_view -%}
    {% do adapter.zorder_remember(target_relation) %}
  {%- endif -%}
  {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}
