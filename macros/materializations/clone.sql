{#- dbt's own: what can be cloned is Delta alone, which dbt-spark does; of anything else a clone is a view. -#}
{% materialization clone, adapter='spark_zorder' %}
  {%- if config.get('file_format') == 'delta' -%}
    {{ return(materialization_clone_spark()) }}
  {%- endif -%}
  {{ return(materialization_clone_default()) }}
{% endmaterialization %}

{% macro spark_zorder__can_clone_table() %}
  {{ return(config.get('file_format') == 'delta') }}
{% endmacro %}
