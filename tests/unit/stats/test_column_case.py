"""Files whose columns are spelled in another case than their table's."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from dbt_zorder.pruning import explain, scan
from dbt_zorder.spark.catalog import TableName
from dbt_zorder.spark.conf import CASE_SENSITIVE
from dbt_zorder.stats import column_case as spelling
from dbt_zorder.tables.parquet.operations.rebuild_stats import rebuild_stats
from tests.support import settings, unique

BOTH = [("true", "false"), ("false", "true"), ("false", "false")]


@pytest.fixture
def table(spark: SparkSession, database: str, tmp_path: Path) -> TableName:
    """A table of two files that spell ``a`` and ``s.f`` otherwise, and of one that does not."""
    for n, names in enumerate((("A", "F"), ("A", "F"), ("a", "f"))):
        leaf = pa.StructArray.from_arrays([pa.array([n], pa.int64())], [names[1]])
        rows = pa.table({names[0]: pa.array([n], pa.int64()), "id": pa.array([n], pa.int64()), "s": leaf})
        pq.write_table(rows, tmp_path / f"{n}.parquet")
    table = TableName(database, unique("cased"))
    fields = "a BIGINT, id BIGINT, s STRUCT<f: BIGINT>"
    spark.sql(f"CREATE TABLE {table.sql} ({fields}) USING parquet LOCATION '{tmp_path}'")
    return table


@pytest.mark.parametrize(("collected", "read"), BOTH)
@pytest.mark.parametrize("predicate", ["a = 1", "a IS NULL", "s.f = 1", "s.f IS NULL", "a = 2", "id = 1"])
def test_no_row_is_lost(spark: SparkSession, table: TableName, collected: str, read: str, predicate: str) -> None:
    with settings(spark, {CASE_SENSITIVE: collected}):
        rebuild_stats(spark, table, ["a", "id", "s.f"])
    with settings(spark, {CASE_SENSITIVE: read}):
        spark.sql(f"REFRESH TABLE {table.sql}")
        assert scan(spark, str(table), predicate).count() == spark.table(table.sql).where(predicate).count()
        assert explain(spark, str(table), "id = 1").files_read == 1
        assert explain(spark, str(table), "a = 7").files_read == 2


def test_what_the_other_kind_of_session_cannot_read_is_a_warning(
    spark: SparkSession, table: TableName, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        msg = "ambiguous"
        raise RuntimeError(msg)

    monkeypatch.setattr(spelling, "row_stats", fail)
    assert rebuild_stats(spark, table, ["id"]) == 3
    assert "with spark.sql.caseSensitive=True, which would have to read the same, it cannot be read" in caplog.text
    assert explain(spark, str(table), "id = 1").files_read == 3


def test_without_a_session_beside_it_its_own_is_asked(
    spark: SparkSession, table: TableName, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As over Spark Connect."""
    monkeypatch.setattr(spelling, "sibling_session", lambda *_: None)
    rebuild_stats(spark, table, ["a", "id"])
    assert spark.conf.get(CASE_SENSITIVE) == "false"
    assert explain(spark, str(table), "id = 1").files_read == 1
    assert explain(spark, str(table), "a = 7").files_read == 2
