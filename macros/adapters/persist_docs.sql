{#- Comments of a Parquet table, where dbt-spark writes none on columns; dbt warns of columns that are not there. -#}
{% macro spark_zorder__persist_docs(relation, model, for_relation, for_columns) %}
  {%- if (config.get('file_format') or 'parquet') | lower in ['delta', 'hudi', 'iceberg'] -%}
    {{ return(spark__persist_docs(relation, model, for_relation, for_columns)) }}
  {%- endif -%}
  {#- a column in quotes is one of that very case, so only now, beside the table's own names, can its comment be found -#}
  {%- set columns = model.columns if for_columns and config.persist_column_docs() else {} -%}
  {%- if columns -%}
    {%- set existing = adapter.get_columns_in_relation(relation) | map(attribute='name') | list -%}
    {%- set columns = validate_doc_columns(relation, columns, existing) -%}
  {%- endif -%}
  {% do adapter.zorder_comment(
      relation, model.description if for_relation and config.persist_relation_docs() else none, columns
  ) %}
{% endmacro %}

{#- The comment of a CREATE statement: dbt-spark escapes single quotes alone. -#}
{% macro spark_zorder__comment_clause() %}
  {%- if config.persist_relation_docs() and model.description -%}
    comment {{ adapter.zorder_quote(model.description) }}
  {%- endif -%}
{% endmacro %}

{#- A view with its comments. Columns are those of the query, in its own spelling. -#}
{% macro spark_zorder__create_view_as(relation, sql) -%}
  {%- if model is defined and config.get('materialized') == 'view' and 'zorder_by' in (model.raw_code or '') -%}
    {% do exceptions.warn(relation ~ " is a view, on which zorder_by has no effect: add materialized='table' to its config.") %}
  {%- endif -%}
  {%- set sql = compiled_code if sql is none else sql -%} {#- of the clone of a Python model -#}
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

{#- The columns of a model's properties that a table is to have comments of. dbt warns of others, and now: once the rows are
    in, --warn-error would fail the run, and the next one would add them again. -#}
{% macro zorder_described(relation, sql, existing=[]) %}
  {%- if not config.persist_column_docs() or not model.columns -%}
    {{ return({}) }}
  {%- endif -%}
  {%- set names = zorder_columns_of(sql) + existing | map(attribute='name') | list -%}
  {{ return(validate_doc_columns(relation, model.columns, names)) }}
{% endmacro %}

{#- The names of a query's columns: without a run of it where a session can tell, as dbt would run it. -#}
{% macro zorder_columns_of(sql) %}
  {{ return(adapter.zorder_columns_of(sql) if adapter.zorder_in_process() else get_columns_in_query(sql)) }}
{% endmacro %}

{#- Give a table that is built its comments, which no longer can fail the run. -#}
{% macro zorder_persist_docs(relation, columns) %}
  {%- if (config.get('file_format') or 'parquet') | lower in ['delta', 'iceberg'] -%}
    {{ return(persist_docs(relation, model)) }}
  {%- endif -%}
  {% do adapter.zorder_comment(relation, model.description if config.persist_relation_docs() else none, columns) %}
{% endmacro %}
