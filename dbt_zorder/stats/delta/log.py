"""Read the log of a Delta table: its files with their statistics, and the information about its commits."""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DataType, LongType, StringType, StructField, StructType

from dbt_zorder.spark.arrow import frame_of
from dbt_zorder.spark.catalog import TableInfo, TableName, column_facts
from dbt_zorder.spark.columns import ResolvedColumn
from dbt_zorder.spark.jvm import class_named, items, jvm_of, table_identifier
from dbt_zorder.spark.local_disk import on_disk
from dbt_zorder.spark.messages import in_one_line
from dbt_zorder.spark.sql import glob_escape
from dbt_zorder.spark.type_json import plain_columns
from dbt_zorder.stats.arrow_store import LocalStats
from dbt_zorder.stats.bounds_json import UnreadableValueError, local_stats
from dbt_zorder.stats.delta.values import delta_stats_query, delta_values

_LOG = logging.getLogger("dbt_zorder")

_MOST_COMMITS = 20
"""The most commits read one by one from a local disk, a millisecond each; one job reads all older ones."""
_MOST_COMMITS_AFAR = 3
"""The same for a remote store, where each commit costs a request."""

_ADDED = StructType(
    [StructField("path", StringType()), StructField("size", LongType()), StructField("stats", StringType())]
)
"""The fields that are read of an ``add`` action."""


@dataclass(frozen=True)
class DeltaState:
    """A Delta table as its log has it at one moment; see ``table_state.FormatState``.

    Attributes:
        spark: the session.
        table: the name of the table.
        log: the log object of Delta's library.
        snapshot: the latest snapshot, from the same library.
    """

    spark: SparkSession
    table: TableName
    log: Any
    snapshot: Any

    @cached_property
    def version(self) -> str:
        """The number of the version."""
        return str(self.snapshot.version())

    @cached_property
    def folder(self) -> str:
        """The folder of the table."""
        return str(self.log.dataPath().toString())

    def info(self) -> TableInfo | None:
        """Return the columns and partitions as ``describe`` would; None if a column's type is not Spark's own."""
        if len(self._schema) != self.snapshot.schema().length():
            return None
        parts = [str(name) for name in items(self.snapshot.metadata().partitionColumns())]
        return TableInfo("", "delta", self.folder, parts, column_facts(self._schema), "")

    def stats(self, columns: Sequence[ResolvedColumn], token: str = "") -> DataFrame:
        """Return the files of the version as a Spark query."""
        return self._query(self._files(token), columns)

    def load_stats(self, columns: Sequence[ResolvedColumn], token: str = "") -> DataFrame | LocalStats:
        """Return the same, from memory where the log is near and short."""
        return self._stats_of(self._files(token), columns)

    def added(self, columns: Sequence[ResolvedColumn], before: str) -> DataFrame | LocalStats | None:
        """Return the same for the files of the one commit after a version; None unless exactly one followed."""
        commits = self._commits
        if commits.latest != int(before) + 1 or not commits.first_line(commits.latest):
            return None
        return self._stats_of(commits.added(), columns)

    def last_commits(self) -> Iterator[Mapping[str, Any]]:
        """Yield the commit information of the table from its commit files, newest first.

        Raises:
            LookupError: a commit file is missing, has another name, or does not begin with the information. Also raised
                when a commit is so old that one job over all of them is faster.
        """
        commits = self._commits
        most = _MOST_COMMITS if commits.are_near else _MOST_COMMITS_AFAR
        for version in range(commits.latest, -1, -1):
            if version == commits.latest - most:
                msg = f"{self.table} has more than {most} commits"
                raise LookupError(msg)
            line = commits.first_line(version)
            if not line.startswith('{"commitInfo":'):
                msg = f"version {version} of {self.table} does not begin with who made it"
                raise LookupError(msg)
            yield json.loads(line)["commitInfo"]

    @cached_property
    def _commits(self) -> _Commits:
        return _Commits(self.spark, self.log, self.snapshot)

    @cached_property
    def _schema(self) -> StructType:
        return plain_columns(self.snapshot.schema().json(), str(self.table))

    def _files(self, token: str) -> Sequence[Mapping[str, Any]] | DataFrame:
        """Return the version's files, as the ``add`` actions of commits where no job is needed.

        Delta also stores up to 50 of them beside the log ("Version Checksum File"). To reconstruct them from the log
        costs half a second once for each version.
        """
        # the first line of a commit has its token; the latest commit may already be another run's
        if token and token in self._commits.first_line(self._commits.latest):
            return self._commits.added()
        try:
            checksum = self.snapshot.checksumOpt()
            kept = checksum.get().allFiles() if checksum.isDefined() else checksum
            if kept.isDefined():
                return [json.loads(str(one.json()))["add"] for one in items(kept.get())]
        except Exception as exc:  # another version of Delta
            _LOG.debug("the checksum of a version does not list its files: %s", in_one_line(exc))
        return DataFrame(self.snapshot.allFiles().toDF(), self.spark)

    def _stats_of(
        self, files: Sequence[Mapping[str, Any]] | DataFrame, columns: Sequence[ResolvedColumn]
    ) -> DataFrame | LocalStats:
        """Return the statistics of files, from memory where they are already read."""
        if not isinstance(files, DataFrame):
            try:
                read = delta_values(files, self.folder, self._stored(columns))
                return local_stats(self.spark, read, columns, self.version)
            except UnreadableValueError as exc:
                _LOG.debug("the statistics of %s are read by Spark: %s", self.table, exc)
        return self._query(files, columns)

    def _query(self, files: Sequence[Mapping[str, Any]] | DataFrame, columns: Sequence[ResolvedColumn]) -> DataFrame:
        if not isinstance(files, DataFrame):
            types = pa.schema({"path": pa.string(), "size": pa.int64(), "stats": pa.string()})
            files = frame_of(self.spark, pa.Table.from_pylist(list(files), types), _ADDED)
        return delta_stats_query(files, self.folder, self.version, self._stored(columns), columns)

    def _stored(self, columns: Sequence[ResolvedColumn]) -> list[ResolvedColumn]:
        """Return columns by their physical names in files and statistics, if the table maps columns."""
        return [ResolvedColumn(_stored(self._schema, column.path), column.data_type) for column in columns]


def delta_state(spark: SparkSession, table: TableName) -> DeltaState:
    """Return the current state of a table from its log."""
    jvm = jvm_of(spark)
    name = table_identifier(jvm, table.schema, table.identifier)
    found = class_named(jvm, "org.apache.spark.sql.delta.DeltaLog").forTableWithSnapshot(spark._jsparkSession, name)
    return DeltaState(spark, table, found._1(), found._2())


def _stored(schema: StructType, path: tuple[str, ...]) -> tuple[str, ...]:
    """Return the physical path of a column in files and statistics, if the table maps columns."""
    found: list[str] = []
    here: DataType = schema
    for name in path:
        assert isinstance(here, StructType)
        field = here[name]
        found.append((field.metadata or {}).get("delta.columnMapping.physicalName", name))
        here = field.dataType
    return tuple(found)


class _Commits:
    """The commit files of a table, if they have the names that Delta assigns.

    To read one lasts a third of the time that Delta needs to reconstruct a version from its log.
    """

    def __init__(self, spark: SparkSession, log: Any, snapshot: Any) -> None:
        self.latest = int(snapshot.version())
        self._spark = spark
        self._log = log

    @cached_property
    def are_near(self) -> bool:
        """Whether they are on this machine's disk."""
        return self._folder is not None

    def first_line(self, version: int) -> str:
        """Return the first line of a commit file, an empty text if it cannot be read."""
        try:
            if self._folder is not None:
                with open(self._place(version), encoding="utf-8") as lines:
                    return next(lines, "")
            lines = self._log.store().readAsIterator(self._file(version), self._settings)
            try:
                return str(lines.next())
            finally:
                lines.close()
        except Exception as exc:  # the log's files have other names: the caller then reads it by a job
            _LOG.debug("the file of commit %s cannot be read: %s", version, exc)
            return ""

    def added(self) -> Sequence[Mapping[str, Any]] | DataFrame:
        """Return the files that the latest commit added: its ``add`` actions, or a query if it is remote."""
        if self._folder is not None:
            with contextlib.suppress(OSError), open(self._place(self.latest), encoding="utf-8") as lines:
                found = [json.loads(line) for line in lines]
                return [one["add"] for one in found if "add" in one]
        path = str(self._file(self.latest).toString())
        rows = self._spark.read.schema(StructType([StructField("add", _ADDED)])).json(glob_escape(path))
        return rows.where("add IS NOT NULL").select("add.*")

    @cached_property
    def _folder(self) -> str | None:
        place = on_disk(self._spark, self._log.logPath().toString())
        return None if place is None else place.path

    @cached_property
    def _settings(self) -> Any:
        return self._log.newDeltaHadoopConf()

    def _place(self, version: int) -> str:
        return f"{self._folder}/{version:020d}.json"

    def _file(self, version: int) -> Any:
        names = class_named(self._spark._jvm, "org.apache.spark.sql.delta.util.FileNames")
        return names.unsafeDeltaFile(self._log.logPath(), version)
