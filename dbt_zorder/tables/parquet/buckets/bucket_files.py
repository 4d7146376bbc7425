"""Write the bucket of a file into its name, as Spark's own bucketed tables have it, and read it from there."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from dbt_zorder.errors import BuildError
from dbt_zorder.layout.hash_index import BUCKET, BUCKET_ID
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableInfo
from dbt_zorder.spark.columns import case_sensitive
from dbt_zorder.spark.files import delete_empty, move
from dbt_zorder.stats.listing import list_data

_FOLDER = re.compile(rf"(.*/)?{BUCKET}=(\d+)/([^/.]+)(\.[^/]*)", re.DOTALL)


def with_buckets(df: DataFrame, request: BuildRequest) -> tuple[DataFrame, BuildRequest]:
    """Add the bucket of each row as a column, by which the rows are placed as by a partition column.

    Without a hash index, return the arguments.

    Args:
        df: rows in the types of the table; the hash depends on the type.
        request: the settings of the table.
    """
    if request.hash_index is None:
        return df, request
    bucket = request.hash_index.bucket_sql(df.schema, sensitive=case_sensitive(df.sparkSession))
    return df.selectExpr("*", f"{bucket} AS {BUCKET}"), replace(request, spec=request.placing)


def name_buckets(spark: SparkSession, path: str) -> None:
    """Move written files from the folder of their bucket to that of their partition, with the bucket in the name.

    ``day=1/__zorder_bucket=3/part-0-x.c000.parquet`` becomes ``day=1/part-0-x_00003.c000.parquet``.
    """
    folders = set()
    for name in list_data(spark, path):
        found = _FOLDER.fullmatch(name)
        if found is None:
            msg = f"The file {name} at {path} lies in no folder of a bucket."
            raise BuildError(msg)
        partition, bucket, first, rest = found.groups()
        move(spark, f"{path}/{name}", f"{path}/{partition or ''}{first}_{int(bucket):05d}{rest}")
        folders.add(name.rpartition("/")[0])
    for folder in folders:
        delete_empty(spark, f"{path}/{folder}")


def bucket_of(path: str) -> int | None:
    """Return the bucket in a file's name, as Spark reads it; None if there is none."""
    found = re.fullmatch(BUCKET_ID, path.rpartition("/")[2], re.DOTALL)
    return None if found is None else int(found[1])


def outside_buckets(paths: Iterable[str], buckets: int) -> list[str]:
    """Return the files without a bucket in their name, or with one that a table of this number does not have."""
    return [path for path in paths if (bucket := bucket_of(path)) is None or bucket >= buckets]


def check_ids(paths: Iterable[str], buckets: int) -> None:
    """Check that Spark finds each file in a bucket: it skips a file beyond the last bucket without an error.

    Raises:
        BuildError: a file has no bucket in its name, or one that the table does not have.
    """
    wrong = outside_buckets(paths, buckets)
    if wrong:
        msg = (
            f"The file {wrong[0]} has no bucket from 0 to {buckets - 1} in its name, so Spark would skip its rows in "
            "joins: the version is not served."
        )
        raise BuildError(msg)


def has_same_buckets(spark: SparkSession, info: TableInfo, request: BuildRequest, schema: StructType) -> bool:
    """Return whether the table has the hash index that its model asks for now."""
    return request.buckets_in(schema, sensitive=case_sensitive(spark)) == (list(info.bucket_columns), info.bucket_count)
