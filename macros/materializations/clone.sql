{#- Clone a Delta table by dbt-spark's materialization, and any other relation as a view. Skip a relation that would be
    cloned onto itself: creating the view would first drop its own source. -#}
{% materialization clone, adapter='spark_zorder' %}
  {% do adapter.zorder_check_name(model) %}
  {%- set places = [this, defer_relation] | select | map('string') | map('lower') | list -%}
  {%- if defer_relation and places[0] == places[1] -%}
    {{ log("Target relation and defer relation are the same, skipping clone for relation: " ~ this) }}
    {{ return({'relations': [this]}) }}
  {%- endif -%}
  {%- if (config.get('file_format') or '') | lower == 'delta' -%}
    {{ return(materialization_clone_spark()) }}
  {%- endif -%}
  {{ return(materialization_clone_default()) }}
{% endmaterialization %}

{% macro spark_zorder__can_clone_table() %}
  {{ return((config.get('file_format') or '') | lower == 'delta') }}
{% endmacro %}
