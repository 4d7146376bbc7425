from __future__ import annotations

from collections.abc import Sequence

import pytest
from pyspark.sql import DataFrame, SparkSession

from dbt_zorder.errors import ColumnError, ConfigError
from dbt_zorder.layout.plan import Layout, LayoutSpec, keys_for, plan_layout
from tests.support import settings


@pytest.fixture(scope="module")
def frame(spark: SparkSession) -> DataFrame:
    return spark.sql(
        "SELECT id, id % 10 AS g, cast(id AS string) AS s, struct(id AS x) AS st, map(1, id) AS m FROM range(1000)"
    )


def layout(frame: DataFrame, by: Sequence[str] = ("id",), **spec: object) -> Layout:
    return plan_layout(frame, LayoutSpec(by=by, **spec))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("spec", "error", "message"),
    [
        (LayoutSpec(by=[]), ConfigError, "Between 1 and 8 columns can be clustered by; given were 0"),
        (LayoutSpec(by=["id"] * 9), ConfigError, "given were 9"),
        (LayoutSpec(by=["idd"]), ColumnError, "Did you mean 'id'"),
        (LayoutSpec(by=["id", "ID"]), ColumnError, "named twice"),
        (LayoutSpec(by=["m"]), ColumnError, "which Spark cannot order"),
        (LayoutSpec(by=["G"], partition_by=["g"]), ConfigError, "'g' is a partition column"),
        (LayoutSpec(by=["id"], partition_by=["nope"]), ColumnError, "There is no column 'nope'"),
    ],
)
def test_what_is_wrong_with_a_spec_is_said_before_any_data_is_read(
    spark: SparkSession, spec: LayoutSpec, error: type[Exception], message: str
) -> None:
    # to read one row of this would fail
    unread = spark.sql("SELECT raise_error('read') AS x, id, id AS g, map(1, 2) AS m FROM range(3)")
    with pytest.raises(error, match=message):
        keys_for(unread, spec)


def test_column_names_follow_the_sessions_case_rule(spark: SparkSession, frame: DataFrame) -> None:
    assert keys_for(frame, LayoutSpec(by=["ST.X"]))[0].column.path == ("st", "x")
    with settings(spark, {"spark.sql.caseSensitive": "true"}), pytest.raises(ColumnError, match="no column 'ID'"):
        keys_for(frame, LayoutSpec(by=["ID"]))


@pytest.mark.parametrize("files", [1, 2, 7, 16])
def test_the_number_of_files_is_the_one_asked_for(frame: DataFrame, files: int) -> None:
    found = layout(frame, files=files)
    assert (found.forest.files, found.rows) == (files, 1000)


def test_there_are_never_more_files_than_rows(spark: SparkSession) -> None:
    assert layout(spark.range(3), files=10).forest.files == 3
    assert layout(spark.range(0), files=10).forest.files == 1


def test_files_are_counted_by_partition(frame: DataFrame) -> None:
    assert layout(frame, partition_by=["g"], files=3).forest.files == 30


def test_a_small_table_stays_one_file(frame: DataFrame) -> None:
    assert layout(frame).forest.files == 1


def test_a_size_of_a_file_gives_their_number(frame: DataFrame) -> None:
    assert layout(frame, file_size=1000, row_bytes=10.0).forest.files == 10
    assert layout(frame, file_size="1KB", row_bytes=1.024).forest.files == 1
    assert layout(frame, file_size=1000, row_bytes=10.0, partition_by=["g"]).forest.files == 10


def test_a_row_is_measured_where_its_size_is_not_known(spark: SparkSession) -> None:
    frame = spark.sql("SELECT id, uuid() AS u FROM range(10000)")
    assert 8 <= layout(frame, by=["u"], file_size=40_000).forest.files <= 14


def test_a_bad_size_is_an_error(frame: DataFrame) -> None:
    with pytest.raises(ConfigError, match="'-1MB'"):
        layout(frame, file_size="-1MB")


def test_the_same_input_gives_the_same_layout(frame: DataFrame) -> None:
    one, other = (layout(frame, by=["id", "s"], files=5, seed=4) for _ in range(2))
    assert [level.tolist() for level in one.forest.cuts] == [level.tolist() for level in other.forest.cuts]
    assert one.seconds > 0
