{#- Fail if a point query on the column reads more than the share `at_most` of the table's files. One file always passes.
    The numbers come from the table's stats. -#}
{% test zorder_clustered(model, column_name, at_most) %}
  {%- set found = adapter.zorder_operations().point_query_files(model, column_name) if zorder_tests_run() else {'files': 0, 'read': 0} -%}
  select {{ found.read }} as files_read, {{ found.files }} as files, {{ at_most }} as at_most
  where {{ found.read }} > {{ at_most }} * {{ found.files }} and {{ found.read }} > 1
{% endtest %}
