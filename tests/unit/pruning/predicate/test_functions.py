from __future__ import annotations

import re
from collections.abc import Iterable

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.errors import PredicateError
from dbt_zorder.pruning import explain, plan, scan
from dbt_zorder.pruning.condition.constants import REPEATABLE
from dbt_zorder.pruning.files import exclusion
from dbt_zorder.pruning.predicate.functions import (
    OWN,
    _described_as_sparks_own,
    _not_listed,
    called_functions,
    hidden_functions,
    own_functions_in,
)
from dbt_zorder.pruning.predicate.parse import parse
from tests.unit.pruning.test_scan import PRUNED

_TEXT = re.compile(r"'([^'\\]|\\.)*'")
_WORDS = {"and", "as", "cast", "filter", "in", "not", "or", "try_cast", "values", "where"}


def test_names_of_calls() -> None:
    tree = parse("Upper(a) = lower(trim(b)) or if(a, b, c) or case when rand(1) > 0 then x end")
    assert sorted(called_functions(tree)) == [
        "if", "lower", "rand", "trim", "upper",
    ]  # fmt: skip


def test_all_that_is_taken_for_sparks_own_is_its_own(spark: SparkSession) -> None:
    for _ in range(2):  # by name, then by the object that was found for it
        assert hidden_functions(spark, REPEATABLE | OWN) == frozenset()
    assert [name for name in sorted(REPEATABLE | OWN) if not _described_as_sparks_own(spark, name)] == []
    assert _not_listed(spark, REPEATABLE | OWN) == frozenset(), "each that is not in the list takes a call of its own"


def test_a_function_of_the_session_is_found(spark: SparkSession) -> None:
    session = spark.newSession()
    session.udf.register("Upper", lambda value: value, "string")
    if session.sql("SELECT upper('a')").collect()[0][0] == "A":
        assert hidden_functions(session, ["upper", "lower"]) == frozenset(), "this Spark lets no function hide its own"
        return
    assert hidden_functions(spark, ["upper", "lower"]) == frozenset()
    assert hidden_functions(session, ["upper", "lower"]) == {"upper"}
    assert hidden_functions(session, ["lower"]) == frozenset()
    assert _not_listed(session, ["upper", "lower"]) == {"upper"}
    assert _not_listed(session, []) == frozenset()
    assert _not_listed(session, ["nowhere"]) == {"nowhere"}
    assert not _described_as_sparks_own(session, "upper")
    assert _described_as_sparks_own(session, "lower")


def test_calls_in_sql() -> None:
    assert own_functions_in(["coalesce(a, if(b, c, d)) IN (1)", "upper(x)", "x.get(1)"]) == {"coalesce", "if", "get"}
    assert own_functions_in([]) == frozenset()


@pytest.mark.parametrize("list_up_to", [0, 1000])
def test_what_pruning_calls_is_asked_for(
    spark: SparkSession, table: str, monkeypatch: pytest.MonkeyPatch, list_up_to: int
) -> None:
    """Whatever its SQL calls must be known as its own, or a session's function of that name would decide."""
    texts: list[str] = []

    def recorded(sql: Iterable[str]) -> frozenset[str]:
        texts.extend(sql)
        return own_functions_in(texts)

    monkeypatch.setattr(plan, "own_functions_in", recorded)
    monkeypatch.setattr(exclusion, "LIST_UP_TO", list_up_to)
    of_users, refused = set(), []
    for predicate, _ in PRUNED:
        parsed = parse(predicate)
        of_users |= set() if parsed is None else set(called_functions(parsed))
        try:
            explain(spark, table, predicate)
        except PredicateError:
            refused.append(predicate)
    assert refused in ([], ["d = '2024-02-01'::date"]), "Spark 3.5 has no such casts, and takes all else"
    found = {name.lower() for text in texts for name in re.findall(r"(\w+)\s*\(", _TEXT.sub("''", text))}
    numbers = {name for name in found if name.isdigit()}
    assert found - numbers - _WORDS - of_users - {"decimal"} <= OWN
    assert {"coalesce", "concat", "typeof", "length"} <= found


@pytest.mark.parametrize("name", ["coalesce", "concat", "typeof"])
def test_with_a_function_of_the_session_in_place_of_one_that_pruning_calls_all_is_read(
    spark: SparkSession, table: str, name: str
) -> None:
    session = spark.newSession()
    assert explain(session, table, "a = 5").files_read == 1
    session.udf.register(name, lambda *values: True, "boolean")
    if session.sql(f"SELECT {name}(NULL)").collect()[0][0] is not True:
        pytest.skip("this Spark lets no function hide its own")
    explained = explain(session, table, "a = 5")
    assert f"{name}()" in explained.reason
    assert explained.files_read == explained.files_total
    assert scan(session, table, "a = 5").count() == 1
    assert explain(spark, table, "a = 5").files_read == 1
