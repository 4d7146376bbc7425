{#- Fails if a point query on the column reads more than the share `at_most` of the table's files, by its stats. -#}
{% test zorder_clustered(model, column_name, at_most) %}
  {%- set found = adapter.zorder_point_query_files(model) if execute else {} -%}
  {%- set files = found.get('files', 0) -%}
  {#- by `quote: true` dbt puts it into backticks -#}
  {%- set column_name = column_name | replace('`', '') -%}
  {%- if execute and column_name not in found['columns'] -%}
    {% do exceptions.raise_compiler_error(
      'zorder_clustered: there are no stats of ' ~ column_name ~ ' in ' ~ model ~ ', only of ' ~ found['columns'] | join(', ')
    ) %}
  {%- endif -%}
  {%- set read = found['columns'][column_name] if execute else 0 -%}
  select {{ read }} as files_read, {{ files }} as files, {{ at_most }} as at_most
  where {{ read }} > {{ at_most }} * {{ files }}
{% endtest %}
