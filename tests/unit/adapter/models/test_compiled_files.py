from __future__ import annotations

from threading import Thread

from dbt.adapters.spark.relation import SparkRelation

from dbt_zorder.adapter.models.compiled_files import CompiledFiles

ORDERS = SparkRelation.create(schema="s", identifier="orders")
ITEMS = SparkRelation.create(schema="s", identifier="items")


def test_the_first_list_of_a_model_stays_and_is_given_out_once() -> None:
    lists = CompiledFiles()
    lists.keep_first(ORDERS, {"a": 1})
    lists.keep_first(ORDERS, {"a": 1, "b": 2})  # a hook, compiled after the query
    assert lists.pop(ORDERS, {"c": 3}) == {"a": 1}
    assert lists.pop(ORDERS, {"c": 3}) == {"c": 3}


def test_what_a_models_own_hooks_added_replaces_its_list() -> None:
    lists = CompiledFiles()
    lists.keep_first(ORDERS, {"a": 1})
    assert lists.equal(ORDERS, {"a": 1})
    assert not lists.equal(ORDERS, {"a": 1, "b": 2})
    assert not lists.equal(ITEMS, {"a": 1})
    assert lists.equal(ITEMS, None)
    lists.put(ORDERS, {"a": 1, "b": 2})
    assert lists.pop(ORDERS, None) == {"a": 1, "b": 2}


def test_lists_of_other_threads_are_not_seen_and_not_forgotten() -> None:
    lists = CompiledFiles()
    seen = []

    def other() -> None:
        lists.keep_first(ORDERS, {"theirs": 1})
        lists.forget()
        seen.append(lists.pop(ORDERS, None))

    lists.keep_first(ORDERS, {"ours": 1})
    lists.keep_first(ITEMS, {"ours": 2})
    thread = Thread(target=other)
    thread.start()
    thread.join()
    assert seen == [None]
    assert lists.equal(ORDERS, {"ours": 1})
    lists.forget()
    assert lists.equal(ORDERS, None)
    assert lists.equal(ITEMS, None)
