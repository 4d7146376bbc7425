"""The statistics of a Delta table, JSON beside each file in its log (Delta protocol, per-file statistics)."""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import (
    DataType,
    DateType,
    LongType,
    NumericType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from dbt_zorder.arrow import frame_of
from dbt_zorder.catalog import TableName
from dbt_zorder.columns import ResolvedColumn
from dbt_zorder.ddl import type_ddl
from dbt_zorder.disk import on_disk
from dbt_zorder.jvm import class_named, items, jvm_of, table_identifier
from dbt_zorder.spark_message import in_one_line
from dbt_zorder.sql import glob_escape

_LOG = logging.getLogger("dbt_zorder")

_MOST_COMMITS = 20
"""So many are looked at one by one, a millisecond each on a local disk; those behind them are asked by one job."""
_MOST_COMMITS_AFAR = 3
"""The same where each takes a request to a store."""

_ADDED = StructType(
    [StructField("path", StringType()), StructField("size", LongType()), StructField("stats", StringType())]
)
"""What is read of an ``add`` action."""


def delta_stats(spark: SparkSession, table: TableName, columns: Sequence[ResolvedColumn], token: str = "") -> DataFrame:
    """Return the files of the latest version of a table; see ``format_stats``."""
    log, snapshot = delta_log(spark, table)
    files = None
    if token:
        commits = _Commits(spark, log, snapshot)
        # its first line says who committed, and that may be somebody else by now
        files = commits.added() if token in commits.first_line(commits.latest) else None
    return _told(log, snapshot, _all_files(spark, snapshot) if files is None else files, columns)


def delta_added(
    spark: SparkSession, table: TableName, columns: Sequence[ResolvedColumn], before: str
) -> DataFrame | None:
    """Return the same of the files that the one commit upon a version added; None if there are more, or none."""
    log, snapshot = delta_log(spark, table)
    commits = _Commits(spark, log, snapshot)
    if commits.latest != int(before) + 1 or not commits.first_line(commits.latest):
        return None
    return _told(log, snapshot, commits.added(), columns)


def last_commits(spark: SparkSession, table: TableName) -> Iterator[Mapping[str, Any]]:
    """Return what the commits of a table say of themselves, as their files have it, from the last one back.

    Raises:
        LookupError: one does not say so at once, its file is gone or has another name, or it lies so far back that a
            job over all of them is faster.
    """
    commits = _Commits(spark, *delta_log(spark, table))
    most = _MOST_COMMITS if commits.are_near else _MOST_COMMITS_AFAR
    for version in range(commits.latest, -1, -1):
        if version == commits.latest - most:
            msg = f"{table} has more than {most} commits"
            raise LookupError(msg)
        line = commits.first_line(version)
        if not line.startswith('{"commitInfo":'):
            msg = f"version {version} of {table} does not begin with who made it"
            raise LookupError(msg)
        yield json.loads(line)["commitInfo"]


def delta_version(spark: SparkSession, table: TableName) -> str:
    """Return the number of the latest version of a table."""
    return str(delta_log(spark, table)[1].version())


def has_statistics(data_type: DataType) -> bool:
    """Tell whether Delta keeps the least and the greatest value of columns of a type."""
    return isinstance(data_type, (NumericType, DateType, TimestampType, TimestampNTZType, StringType))


def _told(log: Any, snapshot: Any, files: DataFrame, columns: Sequence[ResolvedColumn]) -> DataFrame:
    """Return what a version's log says of some of its files.

    Strings come as Delta shortens them, 32 characters that enclose the value; booleans and binaries have no bounds.
    """
    below = f.concat(f.lit(f"{log.dataPath().toString()}/"), "path")
    schema = StructType.fromJson(json.loads(snapshot.schema().json()))
    stored = [ResolvedColumn(_stored(schema, column.path), column.data_type) for column in columns]
    parsed = f.from_json("stats", type_ddl(_json_type(stored))).alias("kept")
    rows = files.select(
        f.when(f.col("path").contains(":/"), f.col("path")).otherwise(below).alias("file_path"),
        f.col("size").alias("file_size"),
        parsed,
    )
    return rows.select(
        "file_path",
        "file_size",
        f.col("kept.numRecords").alias("row_count"),
        f.lit(str(snapshot.version())).alias("version"),
        f.struct(*(f.expr(_bounds(a)).alias(b.name) for a, b in zip(stored, columns, strict=True))).alias("columns"),
    )


def _stored(schema: StructType, path: tuple[str, ...]) -> tuple[str, ...]:
    """Return the path of a column by the names that stand in files and statistics, where columns are mapped."""
    found: list[str] = []
    here: DataType = schema
    for name in path:
        assert isinstance(here, StructType)
        field = here[name]
        found.append((field.metadata or {}).get("delta.columnMapping.physicalName", name))
        here = field.dataType
    return tuple(found)


def delta_log(spark: SparkSession, table: TableName) -> tuple[Any, Any]:
    """Return a table's log and the snapshot of its latest version, of Delta's own classes."""
    jvm = jvm_of(spark)
    name = table_identifier(jvm, table.schema, table.identifier)
    found = jvm.org.apache.spark.sql.delta.DeltaLog.forTableWithSnapshot(spark._jsparkSession, name)
    return found._1(), found._2()


def _all_files(spark: SparkSession, snapshot: Any) -> DataFrame:
    """Return the files of a version, as a commit's ``add`` actions have them.

    Of up to 50 Delta keeps them beside the log as well ("Version Checksum File"); to put them together from the log
    takes half a second, once for each version.
    """
    try:
        checksum = snapshot.checksumOpt()
        kept = checksum.get().allFiles() if checksum.isDefined() else checksum
        if kept.isDefined():
            return _frame(spark, [json.loads(str(one.json()))["add"] for one in items(kept.get())])
    except Exception as exc:  # another version of Delta
        _LOG.debug("the files of a version are not told by its checksum: %s", in_one_line(exc))
    return DataFrame(snapshot.allFiles().toDF(), spark)


def _frame(spark: SparkSession, actions: Sequence[Mapping[str, Any]]) -> DataFrame:
    """Return ``add`` actions as a local relation, which takes no job over the log's files."""
    types = pa.schema({"path": pa.string(), "size": pa.int64(), "stats": pa.string()})
    return frame_of(spark, pa.Table.from_pylist(list(actions), types), _ADDED)


class _Commits:
    """The files of a table's commits, where it keeps them by the names that Delta gave them from its beginning.

    One is read in a third of the time that Delta takes to put a version together from its log.
    """

    def __init__(self, spark: SparkSession, log: Any, snapshot: Any) -> None:
        self.latest = int(snapshot.version())
        self._spark = spark
        self._log = log

    @property
    def are_near(self) -> bool:
        """Tell whether they lie on this machine's disk."""
        return on_disk(self._spark, self._log.logPath().toString()) is not None

    @cached_property
    def _settings(self) -> Any:
        return self._log.newDeltaHadoopConf()

    def first_line(self, version: int) -> str:
        """Return the first line of a commit, an empty text if it cannot be read."""
        try:
            lines = self._log.store().readAsIterator(self._file(version), self._settings)
            try:
                return str(lines.next())
            finally:
                lines.close()
        except Exception as exc:  # a log that is not kept in files of that name: it can be read as any other
            _LOG.debug("the file of commit %s cannot be read: %s", version, exc)
            return ""

    def added(self) -> DataFrame:
        """Return the files that the latest commit added."""
        path = str(self._file(self.latest).toString())
        place = on_disk(self._spark, path)
        if place is not None:
            with contextlib.suppress(OSError), open(place.path, encoding="utf-8") as lines:
                found = [json.loads(line) for line in lines]
                return _frame(self._spark, [one["add"] for one in found if "add" in one])
        rows = self._spark.read.schema(StructType([StructField("add", _ADDED)])).json(glob_escape(path))
        return rows.where("add IS NOT NULL").select("add.*")

    def _file(self, version: int) -> Any:
        names = class_named(self._spark._jvm, "org.apache.spark.sql.delta.util.FileNames")
        return names.unsafeDeltaFile(self._log.logPath(), version)


def _json_type(columns: Sequence[ResolvedColumn]) -> StructType:
    values = _nested([(column.path, column.data_type) for column in columns])
    counts = _nested([(column.path, LongType()) for column in columns])
    kept = [("minValues", values), ("maxValues", values), ("nullCount", counts)]
    return StructType(
        [StructField("numRecords", LongType()), *(StructField(name, kind) for name, kind in kept if columns)]
    )


def _nested(leaves: Sequence[tuple[tuple[str, ...], DataType]]) -> StructType:
    """Return the struct that holds leaves of these paths."""
    fields = []
    for name in dict.fromkeys(path[0] for path, _ in leaves):
        below = [(path[1:], kind) for path, kind in leaves if path[0] == name]
        fields.append(StructField(name, below[0][1] if not below[0][0] else _nested(below)))
    return StructType(fields)


def _bounds(column: ResolvedColumn) -> str:
    kind = type_ddl(column.data_type)
    low, high = (
        f"kept.{side}.{column.sql}" if has_statistics(column.data_type) else f"CAST(NULL AS {kind})"
        for side in ("minValues", "maxValues")
    )
    if isinstance(column.data_type, (TimestampType, TimestampNTZType)):
        high = f"try_add({high}, INTERVAL '0.001' SECOND)"  # Delta cuts microseconds off
    return f"named_struct('min_value', {low}, 'max_value', {high}, 'null_count', kept.nullCount.{column.sql})"
