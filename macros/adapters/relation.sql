{#- Drop a z-ordered table together with its stats relation and versions. Spark would leave them, because the table is
    external. -#}
{% macro spark_zorder__drop_relation(relation) %}
  {%- if not adapter.zorder_drop(relation) -%}
    {{ spark__drop_relation(relation) }}
  {%- endif -%}
{% endmacro %}

{% macro spark_zorder__rename_relation(from_relation, to_relation) %}
  {{ spark__rename_relation(from_relation, to_relation) }}
  {% do adapter.zorder_rename_stats(from_relation, to_relation) %}
{% endmacro %}

{#- Describe the relation itself. Under --empty and --sample its text is a query, which cannot be described. -#}
{% macro spark_zorder__get_columns_in_relation_raw(relation) -%}
  {%- call statement('get_columns_in_relation_raw', fetch_result=True) %}
    describe extended {{ relation.render() }}
  {%- endcall -%}
  {{ return(load_result('get_columns_in_relation_raw').table) }}
{%- endmacro %}

{#- Return columns. dbt-spark's macro returns rows of text, in which dbt's macro for deletions in snapshots finds none. -#}
{% macro spark_zorder__get_columns_in_relation(relation) -%}
  {{ return(adapter.get_columns_in_relation(relation)) }}
{%- endmacro %}
