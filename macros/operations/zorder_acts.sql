{#- Whether an operation does what it is called for: in a hook also `dbt compile` and `dbt docs generate` come to it. -#}
{% macro zorder_acts() %}
  {{ return(execute and flags.WHICH not in ('compile', 'generate', 'docs', 'parse', 'list')) }}
{% endmacro %}
