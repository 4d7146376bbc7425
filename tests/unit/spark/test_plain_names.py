from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.errors import ConfigError
from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.pruning import scan
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableName
from dbt_zorder.spark.plain_names import MOST_CHARACTERS, check_identifier
from dbt_zorder.tables.batch import Batch
from dbt_zorder.tables.parquet.build import build
from dbt_zorder.tables.parquet.incremental import increment
from dbt_zorder.tables.parquet.operations.rollback import rollback
from dbt_zorder.tables.parquet.operations.vacuum import vacuum
from dbt_zorder.tables.parquet.operations.verify import verify_table
from dbt_zorder.tables.parquet.stats_view import stats_table
from tests.support import unique

LONGEST = "a" * MOST_CHARACTERS


@pytest.mark.parametrize("name", ["orders", "A_1", "1st", "select", LONGEST])
def test_words_of_ascii_are_names(name: str) -> None:
    check_identifier(name)


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("my-table", "my_table"),
        ("tâble", "table"),
        ("a b.c", "a_b_c"),
        ("../evil", "evil"),
        (LONGEST + "a", LONGEST),
        ("日本", ""),
        ("", ""),
    ],
)
def test_of_another_name_the_nearest_is_said(name: str, nearest: str) -> None:
    with pytest.raises(ConfigError, match=r"is no name for a table: .* at most 229 characters") as found:
        check_identifier(name)
    assert str(found.value).endswith(f"'{nearest}' would do." if nearest else "at most 229 characters.")


def request(table: TableName, root: str | None = None) -> BuildRequest:
    return BuildRequest(table, LayoutSpec(by=["id"], files=2), location_root=root, grace_hours=0)


@pytest.mark.parametrize("name", ["a[b", "a{b", "{a}", "a*b", "a?b", "a\\b", "${y}"])
def test_a_folder_that_is_a_pattern_is_refused_before_anything_is_written(
    spark: SparkSession, database: str, tmp_path: Path, name: str
) -> None:
    table = TableName(database, unique("t"))
    with pytest.raises(ConfigError, match="Spark reads the location of a table as a pattern"):
        build(spark, spark.range(9).toDF("id"), request(table, f"{tmp_path}/{name}"))
    assert not [*tmp_path.iterdir()]
    assert not spark.catalog.tableExists(table.sql)


@pytest.mark.parametrize("root", ["foo://h/x", "data:x", "//x/y"])
def test_a_folder_that_spark_cannot_open_is_refused(spark: SparkSession, database: str, root: str) -> None:
    with pytest.raises(ConfigError, match="which Spark cannot open: "):
        build(spark, spark.range(9).toDF("id"), request(TableName(database, unique("t")), root))


def test_a_name_that_the_catalog_refuses_is_found_before_anything_is_written(
    spark: SparkSession, database: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=r"'my-table' is no name for a table.*'my_table' would do"):
        build(spark, spark.range(9).toDF("id"), request(TableName(database, "my-table"), str(tmp_path)))
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("name", ["a]b}c$x", "p%20q%", " h#x ", "c:d;e&f", "日本é", "a'b\"c`d", "a\nb", LONGEST])
def test_all_else_works_wherever_a_path_is_used(spark: SparkSession, database: str, tmp_path: Path, name: str) -> None:
    is_name = name == LONGEST
    table, root = TableName(database, name if is_name else unique("t")), str(tmp_path if is_name else tmp_path / name)
    wanted = request(table, root)
    build(spark, spark.range(100).toDF("id"), wanted)
    increment(spark, spark.range(100, 120).toDF("id"), wanted, Batch(may_rewrite=False))
    assert scan(spark, table.sql, "id = 110").count() == 1
    assert spark.table(stats_table(table).sql).count() == 3
    build(spark, spark.range(7).toDF("id"), wanted)
    assert spark.table(table.sql).count() == 7
    rollback(spark, table, None)
    assert (spark.table(table.sql).count(), verify_table(spark, table).findings) == (120, [])
    assert len(vacuum(spark, table, 0, 0.0, root, dry_run=False).deleted) == 1
    assert spark.table(table.sql).count() == 120
