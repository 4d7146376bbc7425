"""The log of a Delta table: its files, with statistics beside each, and what its commits say of themselves."""

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
from dbt_zorder.stats.bounds_json import UnknownValueError, local_stats
from dbt_zorder.stats.delta.values import delta_values, told_by_spark

_LOG = logging.getLogger("dbt_zorder")

_MOST_COMMITS = 20
"""So many are looked at one by one, a millisecond each on a local disk; those behind them are asked by one job."""
_MOST_COMMITS_AFAR = 3
"""The same where each takes a request to a store."""

_ADDED = StructType(
    [StructField("path", StringType()), StructField("size", LongType()), StructField("stats", StringType())]
)
"""What is read of an ``add`` action."""


@dataclass(frozen=True)
class DeltaState:
    """A Delta table as its log has it at one moment; see ``formats.FormatState``.

    Attributes:
        spark: the session.
        table: its name.
        log: of Delta's own classes.
        snapshot: of the latest version, likewise.
    """

    spark: SparkSession
    table: TableName
    log: Any
    snapshot: Any

    @cached_property
    def version(self) -> str:
        """The version's number."""
        return str(self.snapshot.version())

    @cached_property
    def folder(self) -> str:
        """Where the table lies."""
        return str(self.log.dataPath().toString())

    def info(self) -> TableInfo | None:
        """Return what ``describe`` would say of its columns and partitions; None where one has a type of others."""
        if len(self._schema) != self.snapshot.schema().length():
            return None
        parts = [str(name) for name in items(self.snapshot.metadata().partitionColumns())]
        return TableInfo("", "delta", self.folder, parts, column_facts(self._schema), "")

    def stats(self, columns: Sequence[ResolvedColumn], token: str = "") -> DataFrame:
        """Return the files of the version as a query of Spark's."""
        return self._query(self._files(token), columns)

    def known(self, columns: Sequence[ResolvedColumn], token: str = "") -> DataFrame | LocalStats:
        """Return the same, from memory where its log is near, and short."""
        return self._told(self._files(token), columns)

    def added(self, columns: Sequence[ResolvedColumn], before: str) -> DataFrame | LocalStats | None:
        """Return the same of the files that the one commit upon a version added; None if there are more, or none."""
        commits = self._commits
        if commits.latest != int(before) + 1 or not commits.first_line(commits.latest):
            return None
        return self._told(commits.added(), columns)

    def last_commits(self) -> Iterator[Mapping[str, Any]]:
        """Return what the commits of the table say of themselves, as their files have it, from the last one back.

        Raises:
            LookupError: one does not say so at once, its file is gone or has another name, or it lies so far back that
                a job over all of them is faster.
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
        """Return the version's files: as a commit's ``add`` actions have them, where no job is needed for it.

        Of up to 50 Delta keeps them beside the log as well ("Version Checksum File"); to put them together from the log
        takes half a second, once for each version.
        """
        # the first line of a commit says who made it, and that may be somebody else by now
        if token and token in self._commits.first_line(self._commits.latest):
            return self._commits.added()
        try:
            checksum = self.snapshot.checksumOpt()
            kept = checksum.get().allFiles() if checksum.isDefined() else checksum
            if kept.isDefined():
                return [json.loads(str(one.json()))["add"] for one in items(kept.get())]
        except Exception as exc:  # another version of Delta
            _LOG.debug("the files of a version are not told by its checksum: %s", in_one_line(exc))
        return DataFrame(self.snapshot.allFiles().toDF(), self.spark)

    def _told(
        self, files: Sequence[Mapping[str, Any]] | DataFrame, columns: Sequence[ResolvedColumn]
    ) -> DataFrame | LocalStats:
        """Return what the log says of some files, from memory where they are there."""
        if not isinstance(files, DataFrame):
            try:
                read = delta_values(files, self.folder, self._stored(columns))
                return local_stats(self.spark, read, columns, self.version)
            except UnknownValueError as exc:
                _LOG.debug("the statistics of %s are read by Spark: %s", self.table, exc)
        return self._query(files, columns)

    def _query(self, files: Sequence[Mapping[str, Any]] | DataFrame, columns: Sequence[ResolvedColumn]) -> DataFrame:
        if not isinstance(files, DataFrame):
            types = pa.schema({"path": pa.string(), "size": pa.int64(), "stats": pa.string()})
            files = frame_of(self.spark, pa.Table.from_pylist(list(files), types), _ADDED)
        return told_by_spark(files, self.folder, self.version, self._stored(columns), columns)

    def _stored(self, columns: Sequence[ResolvedColumn]) -> list[ResolvedColumn]:
        """Return columns by the names that stand in files and statistics, where columns are mapped."""
        return [ResolvedColumn(_stored(self._schema, column.path), column.data_type) for column in columns]


def delta_state(spark: SparkSession, table: TableName) -> DeltaState:
    """Return a table as its log has it now."""
    jvm = jvm_of(spark)
    name = table_identifier(jvm, table.schema, table.identifier)
    found = class_named(jvm, "org.apache.spark.sql.delta.DeltaLog").forTableWithSnapshot(spark._jsparkSession, name)
    return DeltaState(spark, table, found._1(), found._2())


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


class _Commits:
    """The files of a table's commits, where it keeps them by the names that Delta gave them from its beginning.

    One is read in a third of the time that Delta takes to put a version together from its log.
    """

    def __init__(self, spark: SparkSession, log: Any, snapshot: Any) -> None:
        self.latest = int(snapshot.version())
        self._spark = spark
        self._log = log

    @cached_property
    def are_near(self) -> bool:
        """Tell whether they lie on this machine's disk."""
        return self._folder is not None

    def first_line(self, version: int) -> str:
        """Return the first line of a commit, an empty text if it cannot be read."""
        try:
            if self._folder is not None:
                with open(self._place(version), encoding="utf-8") as lines:
                    return next(lines, "")
            lines = self._log.store().readAsIterator(self._file(version), self._settings)
            try:
                return str(lines.next())
            finally:
                lines.close()
        except Exception as exc:  # a log that is not kept in files of that name: it can be read as any other
            _LOG.debug("the file of commit %s cannot be read: %s", version, exc)
            return ""

    def added(self) -> Sequence[Mapping[str, Any]] | DataFrame:
        """Return the files that the latest commit added: as its actions have them, or by a query where it is afar."""
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
