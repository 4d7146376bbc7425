{#- Build a seed from one DataFrame. With zorder_by, write a new version and swap it in. Without zorder_by, recreate the
    table as dbt-spark does, and overwrite its content. -#}
{% materialization seed, adapter='spark_zorder' %}
  {%- set settings = adapter.zorder_settings(model) -%}
  {%- if settings is none and not adapter.zorder_takes_rows() -%}
    {{ return(materialization_seed_default()) }}
  {%- endif -%}

  {%- set old_relation = adapter.get_relation(database=database, schema=schema, identifier=model['alias']) -%}
  {%- set target_relation = this.incorporate(type='table') -%}
  {%- if old_relation is not none and old_relation.is_view -%}
    {% do exceptions.raise_compiler_error("Cannot seed to '" ~ old_relation.render() ~ "', it is a view") %}
  {%- endif -%}
  {%- set agate_table = load_agate_table() -%}
  {% do store_result('agate_table', response='OK', agate_table=agate_table) %}

  {{ run_hooks(pre_hooks, inside_transaction=False) }}
  {{ run_hooks(pre_hooks, inside_transaction=True) }}

  {%- set rows = adapter.zorder_seed_rows(model, agate_table) -%}
  {%- if settings is none -%}
    {% do zorder_seed_plain(old_relation, agate_table, rows) %}
  {%- else -%}
    {% do store_result('main', response=adapter.zorder_seed_build(
        settings, target_relation, rows, model)) %}
  {%- endif -%}

  {% do apply_grants(target_relation, config.get('grants'), should_revoke(old_relation, should_full_refresh())) %}

  {% do persist_docs(target_relation, model) %}

  {{ run_hooks(post_hooks, inside_transaction=True) }}
  {{ run_hooks(post_hooks, inside_transaction=False) }}

  {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}
