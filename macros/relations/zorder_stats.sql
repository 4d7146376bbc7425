{#- Rebuild the stats of a Parquet table that another tool wrote, as a post-hook, so that zorder_scan can prune it:

    {{ config(post_hook="{{ zorder_stats(this, ['customer_id']) }}") }} -#}
{% macro zorder_stats(relation, columns) %}
  {%- if zorder_acts() and flags.WHICH != 'clone' -%} {#- a clone is a view, without files -#}
    {% do adapter.zorder_operations().rebuild_stats(relation, columns) %}
  {%- endif -%}
{% endmacro %}
