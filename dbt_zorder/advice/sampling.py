"""Draw the sample of a table that a simulation needs, and find the places of constants in it."""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t

from dbt_zorder.advice.condition import Comparison, Condition, Either, Every, Lookup, Scan, leaves
from dbt_zorder.advice.simulation import Places, Ranges, Read, SampledTable, Test
from dbt_zorder.errors import ColumnError
from dbt_zorder.layout.file_count import auto_size, guessed_row_bytes, parse_size
from dbt_zorder.layout.keys import Key, key_of
from dbt_zorder.layout.sample import Sample, draw, wanted_rows
from dbt_zorder.pruning.condition.types import Rules, comparable
from dbt_zorder.pruning.files.stats_source import read_stats
from dbt_zorder.pruning.files.table_facts import TableFacts, read_facts
from dbt_zorder.pruning.joins.keys import ROWS_AT_MOST
from dbt_zorder.pruning.predicate.tree import Column
from dbt_zorder.spark.arrow import collect_arrow
from dbt_zorder.spark.columns import ResolvedColumn
from dbt_zorder.spark.messages import first_line, unlogged
from dbt_zorder.stats.table_state import FORMATS

_LOG = logging.getLogger("dbt_zorder")

MOST_ROWS = 200_000
"""Limit on the rows of a sample."""

_FILE = "xxhash64(_metadata.file_path)"
_AT_ONCE = 200
"""Number of constants that one statement evaluates."""

_BEYOND = b"\xff" * 4
"""Bytes after every text that begins with a prefix: UTF-8 has no such byte."""


@dataclass(frozen=True)
class Asked:
    """What a model asks of its files, besides their layout.

    Attributes:
        files: exact number of files, for each partition, in place of a size.
        file_size: ``auto``, bytes, or a text like ``64MB``.
        stats_columns: columns that have statistics besides those that it is clustered by.
    """

    files: int | None = None
    file_size: str | int = "auto"
    stats_columns: tuple[str, ...] = ()


def sample_reads(
    spark: SparkSession, table: str, scans: Sequence[Scan], asked: Asked
) -> tuple[SampledTable, Sequence[Read]]:
    """Return a sample of the columns that scans filter, and the scans with the places of their constants in it.

    This counts the rows of each file, and reads at most ``MOST_ROWS`` rows of these columns and the partition columns.
    """
    frame = spark.table(table)
    facts = read_facts(spark, table, frame)
    partitions = facts.partition_columns
    filtered = {leaf.column for scan in scans for leaf in leaves(scan.condition)}
    keys = dict(_keys(frame.schema, {*filtered, *partitions}))
    if not keys:
        nothing = SampledTable((), np.zeros((0, 0), dtype=np.int32), 0, 1.0, 1)
        return nothing, [Read(scan.name, None, scan.weight) for scan in scans]
    partition_by = tuple(name for name in keys if name in partitions)
    files, sizes, counts = _present_files(frame)
    rows = int(counts.sum())
    by_size = parse_size(asked.file_size)
    row_bytes = float(sizes.sum() / rows) if rows and len(files) else guessed_row_bytes(frame.schema)
    target = by_size or auto_size(rows * row_bytes)
    expected = asked.files or max(1, round(rows * row_bytes / target))
    wanted = min(MOST_ROWS, wanted_rows(expected, list(keys.values())))
    hashed = _FILE if len(files) else None
    sample = draw(frame, list(keys.values()), wanted, rows, 0, hashed, files)
    sampled = SampledTable(
        tuple(keys),
        sample.ranks,
        rows,
        row_bytes,
        target,
        asked.files,
        partition_by,
        None if facts.provider in FORMATS else frozenset(asked.stats_columns),
        _with_stats(spark, facts, list(keys.values())),
        sample.partitions if len(files) else None,
        max(1, len(files)),
    )
    places = _Constants.find(spark, keys, sample, scans)
    return sampled, [_read(scan, places, frame.schema) for scan in scans]


def _keys(schema: t.StructType, names: Iterable[str]) -> Iterator[tuple[str, Key]]:
    for name in sorted(names):
        try:
            yield name, key_of(ResolvedColumn((name,), schema[name].dataType))
        except ColumnError:  # its filters leave out no file either
            continue


def _present_files(frame: DataFrame) -> tuple[Any, Any, Any]:
    """Return the hashed path of each file, in order, its bytes and its rows; no file where Spark names none."""
    try:
        with unlogged():
            of_files = frame.groupBy(f.expr(_FILE)).agg(f.expr("max(_metadata.file_size)"), f.count("*")).collect()
    except Exception as exc:  # Iceberg has no such column, and CHAR columns hide it
        _LOG.debug("the files of the table were not found: %s", first_line(exc))
        none = np.zeros(0, dtype=np.int64)
        return none, none, np.asarray([frame.count()], dtype=np.int64)
    found = np.asarray(sorted(map(tuple, of_files)), dtype=np.int64).reshape(-1, 3)
    return found[:, 0], found[:, 1], found[:, 2]


def _with_stats(spark: SparkSession, facts: TableFacts, keys: Sequence[Key]) -> frozenset[str]:
    """Return the names of the columns that have statistics now."""
    columns = [Column(key.column.path, key.column.data_type) for key in keys]
    stats = read_stats(spark, facts, columns)
    return frozenset(column.name for column in columns if stats.covers(column))


def _read(scan: Scan, constants: _Constants, schema: t.StructType) -> Read:
    test = None if scan.condition is None else constants.test(scan.condition)
    used = t.StructType([field for field in schema.fields if field.name in scan.columns])
    columns = frozenset(leaf.column for leaf in leaves(scan.condition)) if test is not None else frozenset()
    terms = scan.condition.terms if isinstance(scan.condition, Every) else (scan.condition,)
    only = all(isinstance(term, Comparison) and term.op == "=" for term in terms)
    return Read(
        scan.name,
        test,
        scan.weight,
        guessed_row_bytes(used) / guessed_row_bytes(schema),
        columns,
        columns if only else frozenset(),
    )


@dataclass(frozen=True)
class _Constants:
    """The values of the constants and lookups of a workload, and their places among the sampled values of columns.

    Attributes:
        numbers: number of each column in the sample.
        distinct: sampled values of each column, in order.
        values: value of each constant as a key of its column, by column and SQL text; NULL and errors are missing.
        lists: the same for each lookup.
    """

    numbers: Mapping[str, int]
    distinct: Sequence[Sequence[Any]]
    values: Mapping[tuple[str, str], Any]
    lists: Mapping[Lookup, Sequence[Any]]

    @classmethod
    def find(cls, spark: SparkSession, keys: Mapping[str, Key], sample: Sample, scans: Sequence[Scan]) -> _Constants:
        """Let Spark evaluate all constants and lookups."""
        found = [leaf for scan in scans for leaf in leaves(scan.condition) if leaf.column in keys]
        constants = dict.fromkeys(
            (leaf.column, value) for leaf in found if isinstance(leaf, Comparison) for value in leaf.values
        )
        lookups = dict.fromkeys(leaf for leaf in found if isinstance(leaf, Lookup))
        lists = {lookup: values for lookup in lookups if (values := _look_up(spark, lookup, keys)) is not None}
        return cls(
            {name: number for number, name in enumerate(keys)},
            [values.to_pylist() for values in sample.distinct],
            _evaluate(spark, list(constants), keys),
            lists,
        )

    def test(self, condition: Condition) -> Test | None:
        """Return a condition with the places of its constants; None if it cannot leave out a file."""
        if isinstance(condition, Comparison):
            return self._compared(condition)
        if isinstance(condition, Lookup):
            values = self.lists.get(condition)
            return None if values is None else self._points(condition.column, values)
        terms = [self.test(term) for term in condition.terms]
        found = tuple(term for term in terms if term is not None)
        if isinstance(condition, Every):
            return Every(found) if found else None
        return Either(found) if len(found) == len(terms) else None

    def _compared(self, comparison: Comparison) -> Ranges | None:
        column = comparison.column
        if column not in self.numbers:
            return None
        number, nothing = self.numbers[column], np.zeros(0, dtype=np.int64)
        if comparison.op == "null":
            return Ranges(number, nothing, nothing, nulls=True)
        values = [self.values.get((column, value)) for value in comparison.values]
        if any(value is None for value in values):
            return None
        if comparison.op == "=":
            return self._points(column, values)
        place, last = self._place(column, values[0]), 2 * len(self.distinct[number]) + 1
        between = place % 2  # values on both sides of the constant may be there
        match comparison.op:
            case "<":
                first, end = 1, place - 1 + between
            case "<=":
                first, end = 1, place
            case ">":
                first, end = place + 1 - between, last
            case ">=":
                first, end = place, last
            case _:
                if not isinstance(values[0], bytes):
                    return None
                first, end = place, self._place(column, values[0] + _BEYOND)
        return Ranges(number, _one(first), _one(end))

    def _points(self, column: str, values: Sequence[Any]) -> Ranges:
        return Ranges.points(self.numbers[column], [self._place(column, value) for value in values])

    def _place(self, column: str, value: Any) -> int:
        distinct = self.distinct[self.numbers[column]]
        below = bisect_left(distinct, value)
        return 2 * below + (2 if below < len(distinct) and distinct[below] == value else 1)


def _one(place: int) -> Places:
    return np.asarray([place], dtype=np.int64)


def _evaluate(
    spark: SparkSession, constants: Sequence[tuple[str, str]], keys: Mapping[str, Key]
) -> dict[tuple[str, str], Any]:
    """Return the value of each constant as a key of its column; NULL, errors and other types are missing."""
    found: dict[tuple[str, str], Any] = {}
    for start in range(0, len(constants), _AT_ONCE):
        batch = constants[start : start + _AT_ONCE]
        try:
            found |= _evaluate_batch(spark, batch, keys)
        except Exception:  # one of them is at fault
            for constant in batch:
                try:
                    found |= _evaluate_batch(spark, [constant], keys)
                except Exception as exc:
                    _LOG.debug("%s cannot be evaluated: %s", constant[1], first_line(exc))
    return found


def _evaluate_batch(
    spark: SparkSession, constants: Sequence[tuple[str, str]], keys: Mapping[str, Key]
) -> dict[tuple[str, str], Any]:
    with unlogged():
        types = spark.sql(f"SELECT {', '.join(f'({sql}) AS c{n}' for n, (_, sql) in enumerate(constants))}").schema
        usable = [
            constant
            for constant, given in zip(constants, types.fields, strict=True)
            if comparable(keys[constant[0]].column.data_type, given.dataType, Rules())
        ]
        if not usable:
            return {}
        inner = ", ".join(
            f"try_cast(({sql}) AS {keys[column].column.data_type.simpleString()}) AS v{n}"
            for n, (column, sql) in enumerate(usable)
        )
        outer = ", ".join(f"{_key_sql(keys[column], f'v{n}')} AS k{n}" for n, (column, _) in enumerate(usable))
        row = collect_arrow(spark.sql(f"SELECT {outer} FROM (SELECT {inner})"))
    values = {constant: row.column(n)[0].as_py() for n, constant in enumerate(usable)}
    return {constant: value for constant, value in values.items() if value is not None}


def _key_sql(key: Key, name: str) -> str:
    return key_of(ResolvedColumn((name,), key.column.data_type)).sampled


def _look_up(spark: SparkSession, lookup: Lookup, keys: Mapping[str, Key]) -> Sequence[Any] | None:
    """Return the keys that a lookup finds, as keys of its column; None if they are too many, or it fails."""
    key = keys[lookup.column]
    cast = f"try_cast(v AS {key.column.data_type.simpleString()}) AS v"
    try:
        with unlogged():
            found = spark.sql(f"SELECT v FROM ({lookup.query}) AS q(v)")
            if not comparable(key.column.data_type, found.schema["v"].dataType, Rules()):
                return None
            values = found.selectExpr(cast).selectExpr(f"{_key_sql(key, 'v')} AS k").where("k IS NOT NULL").distinct()
            rows = collect_arrow(values.limit(ROWS_AT_MOST + 1))
    except Exception as exc:  # a table that is not built yet, or SQL that sqlglot writes otherwise
        _LOG.debug("%s cannot be run: %s", lookup.query, first_line(exc))
        return None
    return rows.column(0).to_pylist() if rows.num_rows <= ROWS_AT_MOST else None
