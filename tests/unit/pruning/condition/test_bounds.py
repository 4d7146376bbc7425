"""Bounds of every function of the table, by every value between two others."""

# ruff: noqa: E501
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t

from dbt_zorder.pruning.condition.bounds import read_operand
from dbt_zorder.pruning.condition.monotone import FUNCTIONS, Monotone
from dbt_zorder.pruning.condition.operand import Operand, StatsNames
from dbt_zorder.pruning.condition.types import family
from dbt_zorder.pruning.predicate.confirm import read_types
from dbt_zorder.pruning.predicate.names import Names
from dbt_zorder.pruning.predicate.parse import parse
from dbt_zorder.pruning.predicate.read import read
from dbt_zorder.pruning.predicate.tree import And
from tests.support import settings


@pytest.fixture(autouse=True)
def stats_are() -> None:
    """Statistics play no part here."""


TIMES = [
    "0001-01-01 00:00:00", "1582-10-04 12:00:00", "1582-10-15 00:00:00", "1892-07-04 23:00:00", "1969-12-31 23:59:59",
    "2010-03-14 00:00:30", "2010-03-14 00:30:00", "2010-03-14 01:10:00", "2010-11-06 23:30:00", "2010-11-07 00:00:30",
    "2010-11-07 00:30:00", "2010-11-07 01:30:00", "2011-12-29 12:00:00", "2011-12-30 12:00:00", "2011-12-31 12:00:00",
    "2024-02-29 00:00:00", "2024-03-05 07:30:15.123456", "2024-03-05 23:00:00", "2024-03-06 01:00:00",
    "9999-12-31 23:59:59.999999",
]  # fmt: skip
VALUES: dict[str, tuple[t.DataType, list[str]]] = {
    "i": (t.IntegerType(), [str(v) for v in (-(2**31), -(2**31) + 1, -100, -3, -1, 0, 1, 2, 42, 1000, 2**31 - 1)]),
    "l": (t.LongType(), [str(v) for v in (-(2**63), -(2**53) - 1, -7, 0, 1, 86_399, 1_289_097_001, 2**53 + 1, 2**63 - 1)]),
    "x": (t.DoubleType(), ["-Infinity", "-1e308", "-2.5", "-0.0", "0.5", "1.5", "2.5", "9007199254740993", "1e308", "NaN"]),
    "f": (t.FloatType(), ["-Infinity", "-3e38", "-0.5", "0.0", "0.1", "1.5", "16777217", "3e38", "Infinity", "NaN"]),
    "dec": (t.DecimalType(9, 2), ["-9999999.99", "-1.50", "-0.01", "0.00", "0.05", "1.49", "1.50", "9999999.99"]),
    "wide": (t.DecimalType(38, 10), ["-9999999999999999999999999999", "-1.0000000005", "0", "2.5", "9999999999999999999999999999.9990000001"]),
    "s": (t.StringType(), ["", " ", "A", "a", "a ", "ab", "b", "pre", "pre_1", "zz", "é", "ß", "\uff5e", "\U0001f600"]),
    "d": (t.DateType(), ["-0044-03-15", *(time[:10] for time in TIMES), "+12000-01-01"]),
    "ts": (t.TimestampType(), ["-0044-03-15 00:00:00", *(f"{time}Z" for time in TIMES), "+12000-01-01 00:00:00"]),
    "ntz": (t.TimestampNTZType(), TIMES),
}  # fmt: skip
CONSTANTS = {
    "n": ["1", "-31"], "m": ["1", "2"], "1": ["1"], "v": ["3", "-2", "0.5", "2147483647"],
    "i": ["INTERVAL '1' DAY", "INTERVAL '-1 02:30:00' DAY TO SECOND", "INTERVAL 1 MONTH"],
    "k": ["DATE '2010-11-07'"], "t": ["'yyyy'"], "u": ["'month'", "'week'"], "w": ["'quarter'", "'day'", "'hour'", "'second'"],
    "p": ["'yyyy'", "'yyyy-MM-dd'", "'yyyyMMdd HH:mm'"],
}  # fmt: skip
OVERFLOWING = {"timestamp_seconds(l)", "timestamp_millis(l)"}
"""Functions of BIGINT that raise an error for a value of the column itself."""

ZONES = ["America/St_Johns", "Pacific/Apia"]


def _calls(rule: Monotone, column: str) -> Iterator[str]:
    """Yield calls of a function with each of its constants."""
    for number in range(max(len(CONSTANTS.get(word, [""])) for word in rule.words)):
        given = {word: CONSTANTS[word][number % len(CONSTANTS[word])] for word in rule.words if word != "c"}
        given["c"] = column
        if "(" in rule.form:
            yield f"{rule.name}({', '.join(given[word] for word in rule.words)})"
        else:
            yield f"({' '.join(given.get(word, word) for word in rule.form.split())})"


CASTS = [
    *(f"CAST({c} AS {kind})" for c in ("i", "l", "x", "f", "dec", "wide", "ts") for kind in ("bigint", "smallint", "double")),
    *(f"CAST({c} AS decimal(5, 1))" for c in ("i", "l", "x", "dec", "wide", "ts")),
    *(f"CAST({c} AS {kind})" for c in ("d", "ts", "ntz") for kind in ("date", "string", "timestamp_ltz", "timestamp_ntz")),
    "CAST(x AS float)", "CAST(l AS timestamp)", "date_trunc('month', ts + INTERVAL 1 DAY)", "-(i + 1)", "l * -2 + 1",
    "left(date_format(ts - INTERVAL 1 MONTH, 'yyyy-MM-dd'), 7)", "unix_timestamp(date_trunc('hour', ntz)) + 1",
    "year(add_months(date_add(d, 1), 1))", "substr(concat('x', s), 1, 2)", "month(ts + INTERVAL '1' DAY)",
]  # fmt: skip


def _expressions() -> list[str]:
    found = list(CASTS)
    for rule in FUNCTIONS:
        for column, (kind, _) in VALUES.items():
            if family(kind) in rule.accepts:
                found += _calls(rule, column)
    return [one for one in dict.fromkeys(found) if one not in OVERFLOWING]


@dataclass(frozen=True)
class Bounded:
    """An expression of a column, the place of the column, and its bounds in a file."""

    text: str
    column: str
    place: int
    operand: Operand


@pytest.fixture(scope="module")
def bounded(spark: SparkSession) -> list[Bounded]:
    schema = t.StructType([t.StructField(name, kind) for name, (kind, _) in VALUES.items()])
    trees = {sql: read(parse(f"{sql} IS NULL"), Names(schema)).child for sql in _expressions()}  # type: ignore[attr-defined]
    types = read_types(spark, And(tuple(trees.values())))
    found = []
    for sql, tree in trees.items():
        (column,) = tree.columns()
        place = list(VALUES).index(column.name)
        operand = read_operand(tree, StatsNames({column: f"s{place}"}), types)
        assert operand is not None, sql
        found.append(Bounded(sql, column.name, place, operand))
    return found


def _triples(spark: SparkSession) -> DataFrame:
    """Return files of three values, in order: the bounds of each column and the value in between."""
    most = max(len(values) for _, values in VALUES.values())
    arrays = []
    for name, (kind, values) in VALUES.items():
        texts = ", ".join("'" + value + "'" for value in values)
        arrays.append(f"sort_array(transform(array({texts}), v -> CAST(v AS {kind.simpleString()}))) AS {name}")
    rows = spark.sql(f"SELECT {', '.join(arrays)}").crossJoin(
        spark.sql(
            f"SELECT a.id AS lo, b.id AS mid, c.id AS hi FROM range({most}) a JOIN range({most}) b ON a.id <= b.id "
            f"JOIN range({most}) c ON b.id <= c.id AND c.id - a.id IN (0, 1, 3, 12)"
        ).selectExpr("cast(lo as int) lo", "cast(mid as int) mid", "cast(hi as int) hi")
    )
    files = [
        f"struct(get({name}, lo) AS min_value, get({name}, hi) AS max_value) AS s{n}" for n, name in enumerate(VALUES)
    ]
    return rows.selectExpr(
        "lo = hi AS one", "lo", "mid", "hi", *files, *(f"get({name}, mid) AS {name}" for name in VALUES)
    )


@pytest.mark.parametrize("zone", ZONES)
def test_a_value_between_two_has_its_result_between_their_bounds(
    spark: SparkSession, bounded: list[Bounded], zone: str
) -> None:
    plain = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
    with settings(spark, {"spark.sql.session.timeZone": zone, "spark.sql.ansi.enabled": "false", **plain}):
        files = _triples(spark).coalesce(1).cache()
        wrong: list[str] = []
        effective: list[str] = []
        for start in range(0, len(bounded), 60):
            group = bounded[start : start + 60]
            sql = [_verdict(one) for one in group]
            found = files.agg(*map(_expr, [one for part in sql for one in part])).collect()[0]
            for number, one in enumerate(group):
                lost, kept, alone = found[3 * number : 3 * number + 3]
                wrong += [f"{one.text}: {lost}"] if lost else []
                effective += [one.text] if kept < alone * 0.6 else []
        files.unpersist()
    assert not wrong, "\n".join(wrong)
    assert len(effective) >= len(FUNCTIONS)


def _verdict(one: Bounded) -> tuple[str, str, str]:
    """Return SQL that finds a value outside its bounds, counts files of one value without bounds, and such files."""
    operand, low, high = one.operand, one.operand.low, one.operand.high
    bounds = f"{low} IS NOT NULL AND {high} IS NOT NULL"
    outside = f"NOT ({low} <= {one.text} AND {one.text} <= {high})"
    nothing = "false" if operand.is_partial else f"{one.text} IS NULL"
    given = f"{one.column} IS NOT NULL AND s{one.place}.max_value IS NOT NULL"
    shown = f"to_json(struct(s{one.place}, {one.column} AS value, {low} AS low, {one.text} AS result, {high} AS high))"
    return (
        f"max(if({given} AND (({bounds} AND {outside}) OR {nothing}), {shown}, NULL))",
        f"count_if({given} AND one AND NOT ({bounds}))",
        f"count_if({given} AND one)",
    )


def _expr(sql: str):  # type: ignore[no-untyped-def]
    from pyspark.sql.functions import expr

    return expr(sql)


def test_bounds_raise_no_error_under_ansi(spark: SparkSession, bounded: list[Bounded]) -> None:
    plain = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
    with settings(spark, {"spark.sql.ansi.enabled": "false", **plain}):
        files = _triples(spark).where("lo = mid AND hi - lo < 2").coalesce(1).cache()
        files.count()
    with settings(spark, {"spark.sql.ansi.enabled": "true", **plain}):
        texts = [f"count_if({one.operand.low} IS NULL) + count_if({one.operand.high} IS NULL)" for one in bounded]
        for start in range(0, len(texts), 60):
            files.agg(*map(_expr, texts[start : start + 60])).collect()
    files.unpersist()
