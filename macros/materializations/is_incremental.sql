{#- dbt's own answer, given after the journal is empty: what a model asks of its table while it is compiled, such as the
    latest timestamp, then counts the rows of a run that was interrupted, and none comes in twice. dbt's macro cannot be
    called from here, since every call by its name, also as dbt.is_incremental(), leads to this one. -#}
{% macro is_incremental() %}
  {%- if not execute -%}
    {{ return(False) }}
  {%- endif -%}
  {%- set relation = adapter.get_relation(this.database, this.schema, this.table) -%}
  {%- set answer = relation is not none and relation.type == 'table' and model.config.materialized == 'incremental'
      and not should_full_refresh() -%}
  {%- if answer and flags.WHICH in ['run', 'build', 'retry'] -%}
    {%- if config.get('zorder_by') -%}
      {% do adapter.zorder_begin(this) %}
    {%- else -%}
      {% do adapter.zorder_recover(this) %}
    {%- endif -%}
  {%- endif -%}
  {{ return(answer) }}
{% endmacro %}
