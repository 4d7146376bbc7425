"""Rows and requests that the tests of formats share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableName
from tests.support import same_rows

HERE, BY_SPARK = "written here", "by Spark"
"""Who wrote the files of a table."""


def failing(error: Exception) -> Any:
    """Return what fails, whatever it is given."""

    def fail(*_: object) -> None:
        raise error

    return fail


def same(found: DataFrame, expected: DataFrame) -> bool:
    """Compare rows, of which the column ``m`` is a map."""
    told = [df.withColumn("m", f.expr("array_sort(map_entries(m))")) for df in (found, expected)]
    return same_rows(*told)


def rows(spark: SparkSession, first: int, end: int) -> DataFrame:
    """Rows of which ``a`` and ``s`` have many values in no order."""
    return spark.range(first, end).selectExpr(
        "id",
        "pmod(hash(id), 5000) AS a",
        "concat('k', lpad(pmod(hash(id, 7), 5000), 4, '0')) AS s",
        "CAST(id % 3 AS INT) AS p",
        "named_struct('x', id % 50, 'y', 'z') AS st",
    )


def request(
    table: TableName,
    file_format: str,
    by: Sequence[str] = ("a", "s"),
    partition_by: Sequence[str] = (),
    files: int | None = 16,
    properties: Mapping[str, str] | None = None,
    location_root: str | None = None,
) -> BuildRequest:
    """What to build of such rows."""
    spec = LayoutSpec(by=by, files=files, partition_by=partition_by)
    return BuildRequest(table, spec, properties=properties or {}, location_root=location_root, file_format=file_format)
