from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.errors import ColumnError, ConfigError
from dbt_zorder.layout.spec import LayoutSpec, keys_for
from tests.support import settings


@pytest.mark.parametrize(
    ("spec", "error", "message"),
    [
        (LayoutSpec(by=[]), ConfigError, "Between 1 and 8 columns can be clustered by; given were 0"),
        (LayoutSpec(by=["id"] * 9), ConfigError, "given were 9"),
        (LayoutSpec(by=["idd"]), ColumnError, "Did you mean 'id'"),
        (LayoutSpec(by=["id", "ID"]), ColumnError, "named twice"),
        (LayoutSpec(by=["st", "st.x"]), ColumnError, "'st' and 'st.x' are ordered by the same values"),
        (LayoutSpec(by=[1]), ColumnError, "given was 1"),  # type: ignore[list-item]
        (LayoutSpec(by=["m"]), ColumnError, "which Spark cannot order"),
        (LayoutSpec(by=["G"], partition_by=["g"]), ConfigError, "'g' is a partition column"),
        (LayoutSpec(by=["id"], partition_by=["nope"]), ColumnError, "There is no column 'nope'"),
    ],
)
def test_what_is_wrong_with_a_spec_is_said_before_any_data_is_read(
    spark: SparkSession, spec: LayoutSpec, error: type[Exception], message: str
) -> None:
    # to read one row of this would fail
    unread = spark.sql(
        "SELECT raise_error('read') AS x, id, id AS g, map(1, 2) AS m, struct(id AS x) AS st FROM range(3)"
    )
    with pytest.raises(error, match=message):
        keys_for(unread, spec)


def test_column_names_follow_the_sessions_case_rule(spark: SparkSession) -> None:
    frame = spark.sql("SELECT id, struct(id AS x) AS st FROM range(3)")
    assert keys_for(frame, LayoutSpec(by=["ST.X"]))[0].column.path == ("st", "x")
    with settings(spark, {"spark.sql.caseSensitive": "true"}), pytest.raises(ColumnError, match="no column 'ID'"):
        keys_for(frame, LayoutSpec(by=["ID"]))
