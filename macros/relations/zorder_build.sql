{#- Run a model's query into a new version of its table: query, sample, write, stats, swap. Returns the adapter response. -#}
{% macro zorder_build_model(settings, relation, sql, is_first=false) %}
  {%- set described = zorder_described(relation, sql) -%}
  {%- set response = adapter.zorder_build(settings, relation, zorder_contracted(sql), model, is_first) -%}
  {% do zorder_persist_docs(relation, described) %}
  {% do persist_constraints(relation, model) %}
  {{ return(response) }}
{% endmacro %}

{#- The query of a model as its contract has it, and as it is kept in target/run. -#}
{% macro zorder_contracted(sql) %}
  {%- if config.get('contract').enforced -%}
    {{ get_assert_columns_equivalent(sql) }}
    {%- set sql = get_select_subquery(sql) -%}
  {%- endif -%}
  {{ write(sql) }}
  {{ return(sql) }}
{% endmacro %}
