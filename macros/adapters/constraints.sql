{#- dbt-spark takes an unset file_format for delta here, and would run Delta's ALTER on a Parquet table. -#}
{% macro spark_zorder__persist_constraints(relation, model) %}
  {%- if (config.get('file_format') or '') | lower == 'delta' -%}
    {{ spark__persist_constraints(relation, model) }}
  {%- endif -%}
{% endmacro %}
