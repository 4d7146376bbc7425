{#- Print the columns to cluster a table by, for the queries of the project that read it, or "don't":

    dbt run-operation zorder_advise --args '{model: orders}'

    `queries` adds queries, or predicates on the table's columns. `weights` says how often nodes run:

    dbt run-operation zorder_advise --args "{model: orders, queries: ['customer_id = 42'], weights: {daily_sales: 24}}" -#}
{% macro zorder_advise(model, queries=[], weights={}) %}
  {%- if zorder_acts() -%}
    {%- set target, asked = zorder_target(model), [] -%}
    {%- for query in ([queries] if queries is string else queries or []) -%}
      {% do asked.append(render(query) if query is string else query) %}
    {%- endfor -%}
    {%- set found = adapter.zorder_operations().advise(target.relation, target.node, asked, weights or {}) -%}
    {% do print(found.text) %}
    {{ return(found) }}
  {%- endif -%}
{% endmacro %}
