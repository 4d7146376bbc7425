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
