{#- Set the comments of a Parquet table. dbt-spark writes none on columns of Parquet. dbt warns of missing columns. -#}
{% macro spark_zorder__persist_docs(relation, model, for_relation, for_columns) %}
  {%- if (config.get('file_format') or 'parquet') | lower in ['delta', 'hudi', 'iceberg'] -%}
    {{ return(spark__persist_docs(relation, model, for_relation, for_columns)) }}
  {%- endif -%}
  {#- A quoted name matches a column of exactly that case, so that matching needs the table's own column names. -#}
  {%- set columns = model.columns if for_columns and config.persist_column_docs() else {} -%}
  {%- if columns -%}
    {%- set existing = adapter.get_columns_in_relation(relation) | map(attribute='name') | list -%}
    {%- set columns = validate_doc_columns(relation, columns, existing) -%}
  {%- endif -%}
  {% do adapter.zorder_comment(
      relation, model.description if for_relation and config.persist_relation_docs() else none, columns
  ) %}
{% endmacro %}

{#- Return the comment clause of a CREATE statement. dbt-spark's macro escapes single quotes only. -#}
{% macro spark_zorder__comment_clause() %}
  {%- if config.persist_relation_docs() and model.description -%}
    comment {{ adapter.zorder_quote(model.description) }}
  {%- endif -%}
{% endmacro %}

{#- Create a view with comments. Its columns have the names and the spelling of the query. -#}
{% macro spark_zorder__create_view_as(relation, sql) -%}
  {%- if model is defined and config.get('materialized') == 'view' and 'zorder_by' in (model.raw_code or '') -%}
    {% do exceptions.warn(relation ~ " is a view, on which zorder_by has no effect: add materialized='table' to its config.") %}
  {%- endif -%}
  {%- set sql = compiled_code if sql is none else sql -%} {#- The clone of a Python model passes no SQL. -#}
  {%- set columns = zorder_columns_of(sql) if config.persist_column_docs() and model.columns else [] -%}
  {%- set described = adapter.zorder_documented(validate_doc_columns(relation, model.columns, columns), columns) if columns else {} %}
  create or replace view {{ relation }}
  {%- if columns %} (
    {%- for name in columns %}
    {{ adapter.quote(name) }}{% if described.get(name) %} comment {{ adapter.zorder_quote(described[name]) }}{% endif %}{{ ',' if not loop.last }}
    {%- endfor %}
  )
  {%- endif %}
  {{ comment_clause() }}
  {%- if config.get('contract').enforced -%}
    {{ get_assert_columns_equivalent(sql) }}
  {%- endif %}
  as
    {{ sql }}
{% endmacro %}

{#- Return the columns in a model's properties that exist in the query or the table. dbt warns of the others, and must do
    so before the write: after it, --warn-error would fail the run, and the next run would add the rows again. -#}
{% macro zorder_described(relation, sql, existing=[]) %}
  {%- if not config.persist_column_docs() or not model.columns -%}
    {{ return({}) }}
  {%- endif -%}
  {%- set names = zorder_columns_of(sql) + existing | map(attribute='name') | list -%}
  {{ return(validate_doc_columns(relation, model.columns, names)) }}
{% endmacro %}

{#- Return the names of a query's columns. A session analyzes the query without running it, as dbt's macro would. -#}
{% macro zorder_columns_of(sql) %}
  {{ return(adapter.zorder_columns_of(sql) if adapter.zorder_in_process() else get_columns_in_query(sql)) }}
{% endmacro %}

{#- Set the comments of a table after its build. Failures no longer fail the run. -#}
{% macro zorder_persist_docs(relation, columns) %}
  {%- if (config.get('file_format') or 'parquet') | lower in ['delta', 'iceberg'] -%}
    {{ return(persist_docs(relation, model)) }}
  {%- endif -%}
  {% do adapter.zorder_comment(relation, model.description if config.persist_relation_docs() else none, columns) %}
{% endmacro %}
