{#- Add constraints to Delta tables only. dbt-spark treats an unset file_format as delta here, and would run Delta's ALTER
    on a Parquet table. -#}
{% macro spark_zorder__persist_constraints(relation, model) %}
  {%- if (config.get('file_format') or '') | lower == 'delta' -%}
    {{ spark__persist_constraints(relation, model) }}
  {%- endif -%}
{% endmacro %}
