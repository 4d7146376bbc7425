{#- Fail for every predicate whose pruned and full results differ. Test the given predicates, and `made` further ones that
    are generated from the table's own stats. A predicate that skips files reads the table twice. -#}
{% test zorder_sound(model, predicates=none, made=12) %}
  {%- set wrong = adapter.zorder_operations().mismatches(model, predicates, made) if zorder_tests_run() else [] -%}
  select predicate, pruned_rows, full_rows
  from (
    select cast(null as string) as predicate, cast(null as bigint) as pruned_rows, cast(null as bigint) as full_rows
    {%- for one in wrong %}
    union all select {{ adapter.zorder_quote(one.predicate) }}, {{ one.pruned_rows }}, {{ one.full_rows }}
    {%- endfor %}
  )
  where predicate is not null
{% endtest %}
