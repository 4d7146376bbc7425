{#- Complete the batches in the table's journal, then return the same answer as dbt's macro. A model may query its table at
    compilation, such as for the latest timestamp. The query then sees the rows of an interrupted run, and no row is added
    twice. This macro cannot call dbt's: every call by that name, also as dbt.is_incremental(), leads here. -#}
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
