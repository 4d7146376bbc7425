from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.errors import ConfigError
from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import FORMAT_SUFFIX, NEXT_SUFFIX, PREVIOUS_SUFFIX, TableName, describe
from dbt_zorder.stats.schema import STATS_SUFFIX
from dbt_zorder.tables.parquet.build import build
from dbt_zorder.tables.parquet.operations.drop import drop_table, rename_stats
from dbt_zorder.tables.reserved import SUFFIXES, check_free, check_name, mark_helper, unmark_helper
from dbt_zorder.tables.save import save_table
from dbt_zorder.tables.two_step_swap import restore_if_interrupted
from tests.support import unique

KINDS = {
    "table": "CREATE TABLE {t} USING parquet AS SELECT 1 AS mine",
    "view": "CREATE VIEW {t} AS SELECT 1 AS mine",
}


def make(spark: SparkSession, table: TableName) -> None:
    build(spark, spark.range(10).toDF("id"), BuildRequest(table, LayoutSpec(by=["id"], files=1)))


def strange(spark: SparkSession, table: TableName, suffix: str, kind: str = "table") -> TableName:
    found = TableName(table.schema, table.identifier + suffix)
    spark.sql(KINDS[kind].format(t=found.sql))
    return found


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("suffix", [PREVIOUS_SUFFIX, NEXT_SUFFIX, STATS_SUFFIX])
def test_a_stranger_by_the_name_of_a_helper_is_an_error_before_the_build(
    spark: SparkSession, table: TableName, suffix: str, kind: str
) -> None:
    other = strange(spark, table, suffix, kind)
    with pytest.raises(ConfigError, match=f"{other} is in the way of {table}"):
        make(spark, table)
    assert not restore_if_interrupted(spark, table)
    assert describe(spark, table) is None, "a stranger is not given the table's name"
    assert not drop_table(spark, table)
    assert spark.table(other.sql).columns == ["mine"]


@pytest.mark.parametrize("suffix", [PREVIOUS_SUFFIX, NEXT_SUFFIX, STATS_SUFFIX])
def test_a_stranger_that_comes_later_stays(spark: SparkSession, table: TableName, suffix: str) -> None:
    make(spark, table)
    helper = TableName(table.schema, table.identifier + suffix)
    spark.sql(f"DROP TABLE IF EXISTS {helper.sql}")
    strange(spark, table, suffix)
    new = TableName(table.schema, unique("n"))
    spark.sql(f"ALTER TABLE {table.sql} RENAME TO {new.sql}")
    rename_stats(spark, table, new)
    spark.sql(f"ALTER TABLE {new.sql} RENAME TO {table.sql}")
    assert drop_table(spark, table)
    assert spark.table(helper.sql).columns == ["mine"]


def test_names_of_helpers_are_no_names_of_tables(spark: SparkSession, table: TableName) -> None:
    for suffix in SUFFIXES:
        for name in (table.identifier + suffix, table.identifier.upper() + suffix.upper()):
            with pytest.raises(ConfigError, match=f"'{name}' ends in '{suffix}'"):
                check_name(TableName(table.schema, name))
    check_name(TableName(table.schema, "my__zorder_table"))
    with pytest.raises(ConfigError, match="reserved"):
        save_table(spark.range(3), f"{table.schema}.{table.identifier}__zorder", "id")


def test_a_marked_table_is_a_helper_of_that_table_alone(spark: SparkSession, table: TableName) -> None:
    spark.sql(KINDS["table"].format(t=table.sql))
    mark_helper(spark, table)
    renamed = TableName(table.schema, table.identifier + FORMAT_SUFFIX)
    spark.sql(f"ALTER TABLE {table.sql} RENAME TO {renamed.sql}")
    check_free(spark, table, FORMAT_SUFFIX)
    spark.sql(f"ALTER TABLE {renamed.sql} RENAME TO {table.sql}")
    unmark_helper(spark, table)
    spark.sql(f"ALTER TABLE {table.sql} RENAME TO {renamed.sql}")
    with pytest.raises(ConfigError, match="in the way"):
        check_free(spark, table, FORMAT_SUFFIX)


def test_a_stranger_by_the_new_name_of_stats_stays(
    spark: SparkSession, table: TableName, caplog: pytest.LogCaptureFixture
) -> None:
    make(spark, table)
    new = TableName(table.schema, unique("n"))
    other = strange(spark, new, STATS_SUFFIX)
    spark.sql(f"ALTER TABLE {table.sql} RENAME TO {new.sql}")
    rename_stats(spark, table, new)
    assert "have no relation" in caplog.text
    assert describe(spark, TableName(table.schema, table.identifier + STATS_SUFFIX)) is None
    assert spark.table(other.sql).columns == ["mine"]
    assert drop_table(spark, new)
