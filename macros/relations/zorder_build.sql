{#- Build a new version of a table from a model's query: query, sample, write, stats, swap. Return the adapter response. -#}
{% macro zorder_build_model(settings, relation, sql, is_first=false) %}
  {%- set described = zorder_described(relation, sql) -%}
  {%- set response = adapter.zorder_build(settings, relation, zorder_contracted(sql), model, is_first) -%}
  {% do zorder_persist_docs(relation, described) %}
  {% do persist_constraints(relation, model) %}
  {{ return(response) }}
{% endmacro %}

{#- Return the query of a model, with the columns of its contract if that is enforced, and write it to target/run. -#}
{% macro zorder_contracted(sql) %}
  {%- if config.get('contract').enforced -%}
    {{ get_assert_columns_equivalent(sql) }}
    {%- set sql = get_select_subquery(sql) -%}
  {%- endif -%}
  {{ write(sql) }}
  {{ return(sql) }}
{% endmacro %}
