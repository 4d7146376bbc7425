from __future__ import annotations

from dbt_zorder.spark.endpoint.plan_text import same_plans, show_all

EXPLAINED = """== Parsed Logical Plan ==
'Filter ...
== Analyzed Logical Plan ==
a: int
Filter ({condition})
+- Relation spark_catalog.s.t[a#{id}L] parquet

== Optimized Logical Plan ==
..."""


def explained(condition: str, number: int = 1) -> str:
    return EXPLAINED.format(condition=condition, id=number)


def test_plans_that_differ_by_the_ids_of_columns_are_the_same() -> None:
    assert same_plans(explained("a#1L = 3"), explained("a#71L = 3", 71))
    assert not same_plans(explained("a#1L = 3"), explained("a#1L = 4"))
    assert not same_plans(explained("a#1L = b#2L"), explained("a#1L = a#1L"))


def test_a_plan_that_is_not_whole_is_like_no_other() -> None:
    assert not same_plans(explained("... 3 more fields"), explained("... 3 more fields"))
    assert not same_plans("Error", "Error")


def test_texts_must_be_the_same_and_unlike_other_parts_of_a_plan() -> None:
    assert show_all("a = 'k01' AND `b'x` = 2", "(`a` = 'k01') AND (`b'x` = 2)")
    assert not show_all("a = 'k01'", "a = 'k02'")
    assert not show_all("a = 'x) AND (b#1 = 2'", "a = 'x) AND (b#1 = 2'")
    assert not show_all("a = 1 -- b", "a = 1 -- b")
    assert not show_all('a = "x"', 'a = "x"')
