{#- A post-hook that keeps stats of a Parquet table which something else wrote, so that zorder_scan can prune it:

    {{ config(post_hook="{{ zorder_stats(this, ['customer_id']) }}") }} -#}
{% macro zorder_stats(relation, columns) %}
  {%- if zorder_acts() and flags.WHICH != 'clone' -%} {#- which makes a view -#}
    {% do adapter.zorder_rebuild_stats(relation, columns) %}
  {%- endif -%}
{% endmacro %}
