from __future__ import annotations

import operator
from itertools import combinations, product

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import DoubleType, IntegerType, StringType, TimestampType

from dbt_zorder.pruning.joins import keys as keys_module
from dbt_zorder.pruning.joins.keys import Keys, collect_rows, is_compared


@pytest.fixture(autouse=True)
def stats_are() -> None:
    """No statistics are read here, in memory or by a job."""


OPS = {"=": operator.eq, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


@pytest.mark.parametrize("op", OPS)
def test_bounds_meet_keys_if_a_value_between_them_may_compare_with_one(op: str) -> None:
    for size in range(4):
        for values in combinations(range(6), size):
            for low, high in product(range(6), repeat=2):
                if low <= high:
                    wanted = any(OPS[op](value, key) for value in range(low, high + 1) for key in values)
                    assert Keys(values).meet(op, low, high) == wanted
                    ends = Keys([values[0], values[-1]] if values else [], complete=False)
                    assert ends.meet(op, low, high) or not wanted, "a range may be too wide, and never too narrow"


def plan(spark: SparkSession, sql: str) -> object:
    return spark.sql(sql)._jdf.queryExecution().optimizedPlan()


def test_keys_are_read_without_null_and_in_order(spark: SparkSession) -> None:
    sql = "SELECT * FROM VALUES (3, 'b', 1D), (1, NULL, 2D), (3, 'a', 3D), (NULL, 'a', NULL) AS v(a, b, c)"
    rows = collect_rows(spark, plan(spark, sql), [0, 1, 2])
    whole, texts, floats = map(rows.keys, range(3))
    assert whole == Keys([1, 3])
    assert texts == Keys(["a", "b"])
    assert floats is None, "NaN and -0.0 compare otherwise in Python"


def test_moments_are_the_same_in_every_time_zone(spark: SparkSession) -> None:
    sql = "SELECT * FROM VALUES (timestamp_micros(1700000000000001)), (timestamp_micros(-1)) AS v(a)"
    moments = collect_rows(spark, plan(spark, sql), [0]).keys(0)
    assert moments is not None
    assert [str(value) for value in moments.values] == ["-0.000001", "1700000000.000001"]


def test_of_many_rows_the_ends_are_read(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys_module, "ROWS_AT_MOST", 5)
    sql = "SELECT if(id = 3, NULL, id) AS a, NULL AS b FROM range(3, 20)"
    rows = collect_rows(spark, plan(spark, sql), [0])
    assert rows.keys(0) == rows.keys(0, [(0, "=", Keys([7]))]) == Keys([4, 19], complete=False)


def test_a_text_that_reaches_python_changed_is_no_key(spark: SparkSession) -> None:
    assert collect_rows(spark, plan(spark, "SELECT cast(x'ff' AS string) AS a"), [0]).keys(0) is None


def test_rows_that_fail_a_test_have_no_keys(spark: SparkSession) -> None:
    sql = "SELECT id AS a, if(id = 4, NULL, id % 3) AS b FROM range(9)"
    rows = collect_rows(spark, plan(spark, sql), [0, 1])
    assert rows.keys(0, [(1, "=", Keys([1]))]) == Keys([1, 7])
    assert rows.keys(0, [(1, "<", Keys([1])), (0, ">=", Keys([5]))]) == Keys([6])


def test_a_row_whose_text_reaches_python_changed_passes_every_test(spark: SparkSession) -> None:
    sql = "SELECT * FROM VALUES (1, cast(x'ff' AS string)), (2, 'a'), (3, NULL) AS v(a, b)"
    rows = collect_rows(spark, plan(spark, sql), [0, 1])
    above = Keys(["\U00010000"])  # its bytes are below 0xff, and above those of the character that replaces it
    assert rows.keys(0, [(1, ">", above)]) == Keys([1])


def test_types_that_compare_alike() -> None:
    assert [is_compared(one) for one in (IntegerType(), StringType(), TimestampType(), DoubleType())] == [
        True,
        True,
        True,
        False,
    ]
