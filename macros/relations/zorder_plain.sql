{#- Return a query for the model's rows. A Python model runs here, and the query selects from a view of its result. -#}
{% macro zorder_model_sql() %}
  {%- if model.language == 'python' -%}
    {{ return('select * from ' ~ adapter.zorder_view(model, compiled_code)) }}
  {%- endif -%}
  {{ return(compiled_code) }}
{% endmacro %}

{#- Create a table without zorder_by, as dbt-spark does. Delta and Iceberg replace an existing table of their own format;
    any other existing relation is dropped first. -#}
{% macro zorder_create_plain(old_relation, relation, sql) %}
  {%- set file_format = (config.get('file_format') or '') | lower -%}
  {%- set replaces = old_relation is not none and (
      (old_relation.is_delta and file_format == 'delta') or (old_relation.is_iceberg and file_format == 'iceberg')) -%}
  {%- if old_relation is not none and not replaces -%}
    {% do adapter.drop_relation(old_relation) %}
  {%- endif -%}
  {%- call statement('main') -%}
    {{ create_table_as(False, relation, sql) }}
  {%- endcall -%}
  {% do persist_constraints(relation, model) %}
{% endmacro %}

{#- Add a batch to a table without zorder_by, by dbt-spark's statements. Complete interrupted batches first, because the
    model may have had zorder_by before. -#}
{% macro zorder_increment_plain(old_relation, relation, batch) %}
  {% do adapter.zorder_recover(relation) %}
  {%- set source = adapter.zorder_view(model, compiled_code) -%}
  {% do process_schema_changes(batch.on_schema_change, source, old_relation) %}
  {%- set predicates = config.get('predicates', none) or config.get('incremental_predicates', none) -%}
  {%- set sql = dbt_spark_get_incremental_sql(
      batch.strategy, source, relation, old_relation, config.get('unique_key', none), predicates) -%}
  {%- if batch.overwrite and config.get('partition_by') -%}
    {%- set response = adapter.zorder_overwrite_partitions(relation, sql) -%}
    {%- if response is not none -%}
      {{ write(sql) }}
      {{ return(store_result('main', response=response)) }}
    {%- endif -%}
    {%- call statement('by_partition') -%}
      set spark.sql.sources.partitionOverwriteMode = DYNAMIC
    {%- endcall -%}
  {%- endif -%}
  {%- call statement('main') -%}
    {{ sql }}
  {%- endcall -%}
{% endmacro %}

{#- Recreate a seed's table by dbt-spark's statement, and write its rows in one statement. -#}
{% macro zorder_seed_plain(old_relation, agate_table, rows) %}
  {%- if old_relation is not none -%}
    {%- set create_sql = reset_csv_table(model, True, old_relation, agate_table) -%}
  {%- else -%}
    {%- set create_sql = create_csv_table(model, agate_table) -%}
  {%- endif -%}
  {% do adapter.zorder_seed_load(this, rows) %}
  {%- set code = 'CREATE' if should_full_refresh() else 'INSERT' -%}
  {%- set count = agate_table.rows | length -%}
  {% call noop_statement('main', code ~ ' ' ~ count, code, count) %}
    {{ create_sql }}
  {% endcall %}
{% endmacro %}
