{#- Return whether dbt runs tests instead of only compiling them. `dbt compile` and `dbt docs generate` read no table. -#}
{% macro zorder_tests_run() %}
  {{ return(execute and flags.WHICH in ('test', 'build', 'retry')) }}
{% endmacro %}
