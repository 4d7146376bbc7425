{#- A z-ordered table is external: dropping it must also drop its stats relation and its versions. -#}
{% macro spark_zorder__drop_relation(relation) %}
  {%- if not adapter.zorder_drop(relation) -%}
    {{ spark__drop_relation(relation) }}
  {%- endif -%}
{% endmacro %}

{% macro spark_zorder__rename_relation(from_relation, to_relation) %}
  {{ spark__rename_relation(from_relation, to_relation) }}
  {% do adapter.zorder_rename_stats(from_relation, to_relation) %}
{% endmacro %}

{#- Under --empty and --sample a relation stands for a query of itself; what is described is the relation. -#}
{% macro spark_zorder__get_columns_in_relation_raw(relation) -%}
  {%- call statement('get_columns_in_relation_raw', fetch_result=True) %}
    describe extended {{ relation.render() }}
  {%- endcall -%}
  {{ return(load_result('get_columns_in_relation_raw').table) }}
{%- endmacro %}

{#- dbt-spark's gives rows of text where dbt's own macros expect columns, of which the deletions of a snapshot keep none. -#}
{% macro spark_zorder__get_columns_in_relation(relation) -%}
  {{ return(adapter.get_columns_in_relation(relation)) }}
{%- endmacro %}
