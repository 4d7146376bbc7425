{#- Return whether an operation may act. In a hook, `dbt compile` and `dbt docs generate` call it too. -#}
{% macro zorder_acts() %}
  {{ return(execute and flags.WHICH not in ('compile', 'generate', 'docs', 'parse', 'list')) }}
{% endmacro %}
