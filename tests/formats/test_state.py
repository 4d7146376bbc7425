"""What the metadata of Delta Lake and Iceberg say of a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.errors import ColumnError
from dbt_zorder.spark.catalog import TableName
from dbt_zorder.stats.delta.log import delta_state
from dbt_zorder.stats.table_state import FormatState, state_of
from dbt_zorder.tables.lakehouse.state import current_version
from tests.formats.tables import build, read_state, read_state_or_sizes, request, rows, state_after_append


def test_a_table_is_known_by_its_files(spark: SparkSession, table: TableName, file_format: str) -> None:
    wanted = request(table, file_format)
    report = build(spark, rows(spark, 0, 4_000), wanted)
    found = read_state(spark, wanted)
    assert found.size == (report.summary.bytes, 4_000)
    assert len(found.bytes_of) == found.built.files == 16
    assert sum(found.bytes_of.values()) == report.summary.bytes
    overlap = found.overlap(wanted.spec)
    assert overlap.now == report.summary
    assert overlap.ratio == pytest.approx(1.0, abs=0.3)
    assert read_state(spark, wanted, found.built) == read_state_or_sizes(spark, wanted)


def test_without_bounds_its_files_are_known_still(
    spark: SparkSession, table: TableName, file_format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = request(table, file_format)
    build(spark, rows(spark, 0, 400), wanted)

    whole = read_state(spark, wanted)
    kind = type(state_of(spark, file_format, table))
    load = kind.load_stats

    def without_bounds(self: FormatState, columns: Sequence[Any], token: str = "") -> Any:
        if columns:
            msg = "bounds of another shape"
            raise ValueError(msg)
        return load(self, columns, token)

    monkeypatch.setattr(kind, "load_stats", without_bounds)
    found = read_state_or_sizes(spark, wanted)
    assert (found.keys, found.size, found.bytes_of) == ([], whole.size, whole.bytes_of)
    with pytest.raises(ValueError, match="another shape"):
        read_state(spark, wanted)


def test_a_column_that_is_not_there_is_named(spark: SparkSession, table: TableName, file_format: str) -> None:
    build(spark, rows(spark, 0, 40), request(table, file_format))
    with pytest.raises(ColumnError, match="no column 'b'"):
        read_state(spark, request(table, file_format, by=["b"]))


@pytest.mark.parametrize("commits", [1, 2])
def test_behind_an_append_a_table_is_known_as_if_it_were_read_anew(
    spark: SparkSession, table: TableName, file_format: str, commits: int
) -> None:
    wanted = request(table, file_format)
    build(spark, rows(spark, 0, 4_000), wanted)
    state = read_state_or_sizes(spark, wanted)
    assert state.version == current_version(spark, file_format, table)
    for first in range(4_000, 4_000 + commits * 100, 100):
        rows(spark, first, first + 100).coalesce(1).writeTo(table.sql).append()
    if file_format == "delta":  # by its last commit alone, unless another one came in between
        added = delta_state(spark, table).added([key.column for key in state.keys], state.version)
        assert (added is not None) is (commits == 1)
    found, anew = state_after_append(spark, wanted, state), read_state_or_sizes(spark, wanted)
    assert len(found.bytes_of) == 16 + commits
    assert found.bytes_of == anew.bytes_of
    assert found.overlap(wanted.spec) == anew.overlap(wanted.spec)
