{#- Incremental models are built by dbt-spark's own materialization: a zorder_by is checked, and said to have no effect. -#}
{% materialization incremental, adapter='spark_zorder' %}
  {%- if adapter.zorder_settings(model) is not none -%}
    {% do exceptions.warn(
      "Model '" ~ model.name ~ "': zorder_by has no effect on an incremental model yet; materialize it as a table, or "
      ~ "set zorder_skip: true to keep it quiet."
    ) %}
  {%- endif -%}
  {{ return(materialization_incremental_spark()) }}
{% endmaterialization %}
