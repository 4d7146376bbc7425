{#- A table with zorder_by is built into a new version beside the one that is served, and swapped in by one catalog call.
    A table without it is built by dbt-spark's own materialization. -#}
{% materialization table, adapter='spark_zorder' %}
  {%- set settings = adapter.zorder_settings(model) -%}
  {%- if settings is none -%}
    {{ return(materialization_table_spark()) }}
  {%- endif -%}

  {%- set old_relation = load_cached_relation(this) -%}
  {%- set target_relation = this.incorporate(type='table') -%}

  {{ run_hooks(pre_hooks) }}

  {%- set response = zorder_build_model(settings, target_relation, compiled_code) -%}
  {% do store_result('main', response=response) %}

  {% do apply_grants(target_relation, config.get('grants'), should_revoke(old_relation, full_refresh_mode=True)) %}

  {{ run_hooks(post_hooks) }}

  {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}
