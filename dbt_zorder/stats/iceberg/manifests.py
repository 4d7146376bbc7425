"""Read the state and the statistics of an Iceberg table.

The statistics are the metrics of each file in the manifests. The library or the metadata table ``files`` reads them.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from dbt_zorder.spark.catalog import TableInfo, TableName, column_facts
from dbt_zorder.spark.columns import ResolvedColumn
from dbt_zorder.spark.ddl import type_ddl
from dbt_zorder.spark.jvm import class_named, items, jvm_of
from dbt_zorder.spark.messages import in_one_line
from dbt_zorder.spark.sql import quote_name
from dbt_zorder.spark.type_json import columns_from_json
from dbt_zorder.stats.arrow_store import LocalStats
from dbt_zorder.stats.bounds_json import UnreadableValueError, local_stats
from dbt_zorder.stats.iceberg.values import iceberg_values
from dbt_zorder.stats.schema import columns_struct

_LOG = logging.getLogger("dbt_zorder")


@dataclass(frozen=True)
class IcebergState:
    """An Iceberg table as its metadata have it at one moment; see ``table_state.FormatState``.

    Attributes:
        spark: the session.
        table: the name of the table.
        kept: the table of Iceberg's library. The session's catalog shares it, so it may move on to later snapshots.
        snapshot: the snapshot of Iceberg's library; None if the table has none.
    """

    spark: SparkSession
    table: TableName
    kept: Any
    snapshot: Any | None

    @cached_property
    def version(self) -> str:
        """The id of the snapshot, an empty string if there is none."""
        return "" if self.snapshot is None else str(self.snapshot.snapshotId())

    def info(self) -> TableInfo | None:
        """Return the columns and partitions as ``describe`` would; None if a partition field is no plain column."""
        fields, schema = [*items(self.kept.spec().fields())], self.kept.schema()
        if not all(field.transform().isIdentity() for field in fields):
            return None
        parts = [str(schema.findColumnName(field.sourceId())) for field in fields]
        columns = class_named(jvm_of(self.spark), "org.apache.iceberg.spark.SparkSchemaUtil").convert(schema)
        facts = column_facts(columns_from_json(columns.json(), str(self.table)))
        return TableInfo("", "iceberg", str(self.kept.location()), parts, facts, "")

    def stats(self, columns: Sequence[ResolvedColumn], token: str = "") -> DataFrame:
        """Return the data files of the table as a Spark query, which reads a later snapshot if there is one."""
        files = self.spark.table(f"{self.table.sql}.files").where("content = 0")
        # columns without metrics in any file are not in this table; fetching all its names is slow
        kept: Any = files._jdf.schema().apply("readable_metrics").dataType()
        bounds = [
            f.expr(_bounds(column, kept.getFieldIndex(column.name).isDefined())).alias(column.name)
            for column in columns
        ]
        return files.select(
            "file_path",
            f.col("file_size_in_bytes").alias("file_size"),
            f.col("record_count").alias("row_count"),
            f.lit(self.version).alias("version"),
            *columns_struct(bounds),
        )

    def load_stats(self, columns: Sequence[ResolvedColumn], token: str = "") -> DataFrame | LocalStats:
        """Return the same of exactly this snapshot, from memory if it has few files."""
        try:
            jvm = jvm_of(self.spark)
            files = [] if self.snapshot is None else iceberg_values(jvm, self.kept, self.snapshot, columns)
            return local_stats(self.spark, files, columns, self.version)
        except UnreadableValueError as exc:
            _LOG.debug("the metrics of %s are read by Spark: %s", self.table, exc)
        except Exception as exc:  # another version of Iceberg
            _LOG.debug("Iceberg's library gives no metrics of %s: %s", self.table, in_one_line(exc))
        self.kept.refresh()  # the query uses this table object, and the files of this snapshot may be deleted by now
        return self.stats(columns, token)


def iceberg_state(spark: SparkSession, table: TableName) -> IcebergState:
    """Return the state of a table from its newest metadata."""
    kept = iceberg_table(spark, table)
    return IcebergState(spark, table, kept, kept.currentSnapshot())


def iceberg_table(spark: SparkSession, table: TableName) -> Any:
    """Return the table of Iceberg's own library, with its newest metadata.

    The library answers in one call, where a query of the metadata tables costs a job.
    """
    library = class_named(jvm_of(spark), "org.apache.iceberg.spark.Spark3Util")
    found = library.loadIcebergTable(spark._jsparkSession, table.sql)
    found.refresh()
    return found


def _bounds(column: ResolvedColumn, is_kept: bool) -> str:
    kind = type_ddl(column.data_type)
    metrics = f"readable_metrics.{quote_name(column.name)}"
    low, high, nulls = (
        f"CAST({metrics}.{side} AS {as_type})" if is_kept else f"CAST(NULL AS {as_type})"
        for side, as_type in (("lower_bound", kind), ("upper_bound", kind), ("null_value_count", "bigint"))
    )
    return f"named_struct('min_value', {low}, 'max_value', {high}, 'null_count', {nulls})"
