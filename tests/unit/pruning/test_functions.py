from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.pruning.constants import REPEATABLE
from dbt_zorder.pruning.functions import OWN, _described_as_sparks_own, called, hidden
from dbt_zorder.pruning.parse import parse


@pytest.fixture(autouse=True)
def stats_are() -> None:
    """Statistics play no part here."""


def test_names_of_calls() -> None:
    assert sorted(called(parse("Upper(a) = lower(trim(b)) or if(a, b, c) or case when rand(1) > 0 then x end"))) == [
        "if", "lower", "rand", "trim", "upper",
    ]  # fmt: skip


def test_all_that_is_taken_for_sparks_own_is_its_own(spark: SparkSession) -> None:
    assert hidden(spark, REPEATABLE) == frozenset()
    assert [name for name in sorted(REPEATABLE | OWN) if not _described_as_sparks_own(spark, name)] == []


def test_a_function_of_the_session_is_found(spark: SparkSession) -> None:
    session = spark.newSession()
    session.udf.register("Upper", lambda value: value, "string")
    session.udf.register("coalesce", lambda value: value, "string")
    if session.sql("SELECT upper('a')").collect()[0][0] == "A":
        assert hidden(session, ["upper", "lower"]) == frozenset(), "this Spark lets no function hide its own"
        return
    assert hidden(session, ["upper", "lower"]) == {"upper", "coalesce"}
    assert hidden(session, ["lower"]) == {"coalesce"}
    assert not _described_as_sparks_own(session, "upper")
    assert _described_as_sparks_own(session, "lower")
