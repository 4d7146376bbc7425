{#- Add the rows of a model's query to its table. Return the adapter response. -#}
{% macro zorder_increment_model(settings, relation, sql, batch) %}
  {%- set described = zorder_described(relation, sql, adapter.get_columns_in_relation(relation)) -%}
  {%- set response = adapter.zorder_increment(settings, relation, zorder_contracted(sql), model, batch) -%}
  {% do zorder_persist_docs(relation, described) %}
  {{ return(response) }}
{% endmacro %}

{#- Merge the rows of a model's query into its table by dbt-spark's statement. Return the adapter response. -#}
{% macro zorder_merge_model(settings, old_relation, relation, batch) %}
  {%- set source = adapter.zorder_view(model, compiled_code) -%}
  {%- if config.get('contract').enforced -%}
    {{ get_assert_columns_equivalent('select * from ' ~ source) }}
  {%- endif -%}
  {%- set source = adapter.zorder_merge_source(settings, relation, source, model, batch) -%}
  {% do process_schema_changes(batch.on_schema_change, source, old_relation) %}
  {%- set predicates = config.get('predicates', none) or config.get('incremental_predicates', none) -%}
  {%- set sql = dbt_spark_get_incremental_sql(
      batch.strategy, source, relation, old_relation, config.get('unique_key', none), predicates) -%}
  {{ write(sql) }}
  {%- set response = adapter.zorder_merge(settings, relation, sql, model) -%}
  {% do persist_docs(relation, model) %}
  {{ return(response) }}
{% endmacro %}

{#- Return the strategy of a batch and its options, checked by dbt-spark's own macros. These refuse the two strategies
    that only z-ordered Parquet tables have; ``settings`` is none for other tables. -#}
{% macro zorder_batch(raw_file_format, settings) %}
  {%- set file_format = dbt_spark_validate_get_file_format(raw_file_format) -%}
  {%- set raw_strategy = config.get('incremental_strategy') or 'append' -%}
  {%- if settings is not none and file_format == 'parquet' and raw_strategy in ['merge', 'delete+insert'] -%}
    {%- set strategy = raw_strategy -%}
  {%- else -%}
    {%- set strategy = dbt_spark_validate_get_incremental_strategy(raw_strategy, file_format) -%}
  {%- endif -%}
  {%- if strategy == 'append' and config.get('unique_key') and config.get('zorder_by') -%}
    {% do exceptions.warn(
      "Model '" ~ model.name ~ "': unique_key has no effect with the incremental strategy 'append'"
      ~ ("" if config.get('incremental_strategy') else ", which is the default") ~ ": a row whose key is there comes in "
      ~ "beside it. To update it, set incremental_strategy: merge. To replace whole partitions, set 'insert_overwrite'."
    ) %}
  {%- endif -%}
  {%- if strategy == 'microbatch' and not config.get('partition_by') -%}
    {% do exceptions.raise_compiler_error(
      "Model '" ~ model.name ~ "': the incremental strategy 'microbatch' requires a `partition_by` config, of a column of "
      ~ "the grain " ~ config.get('batch_size') ~ ": each batch replaces the partitions that it has rows of."
    ) %}
  {%- endif -%}
  {%- if strategy == 'microbatch' -%}
    {% do adapter.zorder_warn_of_zone(model.name) %}
  {%- endif -%}
  {{ return({
    'strategy': strategy,
    'overwrite': strategy in ['insert_overwrite', 'microbatch'],
    'on_schema_change': incremental_validate_on_schema_change(config.get('on_schema_change'), default='ignore')
  }) }}
{% endmacro %}

{#- Run a model's pre-hooks. Files that they add to the table of a batch do not count as a conflict with another run. -#}
{% macro zorder_pre_hooks(is_batch) %}
  {%- set files = adapter.zorder_files(this) if is_batch and pre_hooks else none -%}
  {{ run_hooks(pre_hooks) }}
  {%- if files is not none -%}
    {% do adapter.zorder_after_hooks(this, files) %}
  {%- endif -%}
{% endmacro %}
