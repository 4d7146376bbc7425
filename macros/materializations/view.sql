{#- dbt-spark's view. It stands here because a clone looks for a view by the name of its adapter. -#}
{% materialization view, adapter='spark_zorder' %}
  {% do adapter.zorder_check_name(model) %}
  {{ return(create_or_replace_view()) }}
{% endmaterialization %}
