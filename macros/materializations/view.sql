{#- dbt-spark's view materialization. It is repeated here because a clone looks up the view of its own adapter. -#}
{% materialization view, adapter='spark_zorder' %}
  {% do adapter.zorder_check_name(model) %}
  {{ return(create_or_replace_view()) }}
{% endmaterialization %}
