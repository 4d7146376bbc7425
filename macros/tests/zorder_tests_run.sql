{#- Whether tests are run, not only compiled: `dbt compile` and `dbt docs generate` need no table, and read none. -#}
{% macro zorder_tests_run() %}
  {{ return(execute and flags.WHICH in ('test', 'build', 'retry')) }}
{% endmacro %}
