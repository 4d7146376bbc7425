"""Building a table anew from its own rows: by need after an append, or when a user asks for it."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import SparkSession

from dbt_zorder.errors import ZorderError
from dbt_zorder.humanize import counted, size_text
from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableInfo, TableName, describe
from dbt_zorder.spark.columns import as_written
from dbt_zorder.spark.files import has_client
from dbt_zorder.stats.schema import columns_type
from dbt_zorder.stats.store import known_stats
from dbt_zorder.stats.table_state import FORMATS
from dbt_zorder.tables.parquet.build import BuildReport, build
from dbt_zorder.tables.parquet.listing import check_same_files, list_data
from dbt_zorder.tables.parquet.ownership import recover_own_journal
from dbt_zorder.tables.parquet.partition_discovery import let_folders_tell_of
from dbt_zorder.tables.parquet.properties import own_properties
from dbt_zorder.tables.parquet.saved_layout import read_tree
from dbt_zorder.tables.parquet.two_step_swap import bring_back
from dbt_zorder.tables.parquet.version import read_marker, version_of
from dbt_zorder.tables.rewrite_policy import Overlap, measure

_LOG = logging.getLogger("dbt_zorder")


_ALL_VERSIONS = 1_000_000


@dataclass(frozen=True)
class OptimizeReport:
    """What a whole rewrite of a table does, or would do.

    Attributes:
        table: its name.
        files, bytes: of the table as it is, all of which are read and written again.
        files_after: files that the rewrite makes, or is expected to make.
        touched: by clustering column, files that an equality query reads now.
        touched_after: the same after the rewrite.
        version: of the new version; empty for a dry run.
    """

    table: str
    files: int
    bytes: int
    files_after: int
    touched: Mapping[str, float]
    touched_after: Mapping[str, float]
    version: str = ""

    @classmethod
    def of(cls, table: TableName, found: Overlap) -> OptimizeReport:
        """Return what a rewrite of a table would do."""
        now = found.now
        return cls(str(table), now.files, now.bytes, found.files_after, now.point_query_files, found.touched_after)

    def done(self, after: BuildReport) -> OptimizeReport:
        """Return what the rewrite did."""
        figures = after.summary
        return replace(self, files_after=figures.files, touched_after=figures.point_query_files, version=after.version)

    def __str__(self) -> str:
        was = "was" if self.files == 1 else "were"
        done = f"{was} rewritten into" if self.version else "would be rewritten into about"
        head = f"{self.table}: {counted(self.files, 'file')} of {size_text(self.bytes)} {done} {self.files_after:,}."
        parts = [
            f"  a point query on {column} {'read' if self.version else 'reads'} {self._touched(column)} "
            f"files, {'and reads' if self.version else 'and would read about'} {after:,.1f}"
            for column, after in self.touched_after.items()
        ]
        hint = [] if self.version else ["Nothing was changed; to do it, add dry_run: false."]
        return "\n".join([head, *parts, *hint])

    def _touched(self, column: str) -> str:
        """Return how many files are read now, all of them where a column has had no stats."""
        return f"{self.touched.get(column, float(self.files)):,.1f}"

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain values, with ``text`` for people."""
        figures = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {**figures, "touched": dict(self.touched), "touched_after": dict(self.touched_after), "text": str(self)}


def optimize(spark: SparkSession, request: BuildRequest, *, dry_run: bool) -> OptimizeReport:
    """Build a z-ordered table anew from its own rows, or tell what that would do.

    Args:
        spark: the session.
        request: settings of the model, or those of ``request_from_marker``.
        dry_run: change nothing.

    Raises:
        ZorderError: it is no table of ours, or has no stats.
        BuildError: as ``build``.
    """
    if not dry_run:
        recover(spark, request.table)
    info = own_table(spark, request.table)
    try:
        found = measure(spark, request.table, info, request.spec)
    except Exception as exc:
        msg = f"{request.table} has no stats that can be read; make them by zorder_rebuild_stats first."
        raise ZorderError(msg) from exc
    report = OptimizeReport.of(request.table, found)
    return report if dry_run else report.done(rewrite(spark, request))


def rewrite(spark: SparkSession, request: BuildRequest) -> BuildReport:
    """Build a table of ours anew from its own rows; what others append meanwhile makes it give up.

    Raises:
        BuildError: as ``build``, and if files were added or removed meanwhile.
    """
    info = own_table(spark, request.table)
    before = list_data(spark, info.location)
    spark.catalog.refreshTable(request.table.sql)
    # what the catalog says of the table stays, whatever the model has become since
    kept = replace(
        request,
        spec=replace(request.spec, partition_by=list(info.partition_columns)),
        comment=info.comment,
        column_comments={name: comment for name, _, comment in info.columns if comment},
    )
    return build(
        spark,
        spark.table(request.table.sql),
        kept,
        guard=lambda: check_same_files(spark, info.location, before, str(request.table)),
    )


def recover(spark: SparkSession, table: TableName) -> TableInfo | None:
    """Complete what a failed run has left in a table's journal and in its place; return what the catalog says of it.

    A table that is none of ours has no journal.

    Raises:
        ConfigError: it is partitioned, and this session would look for its partitions in the catalog.
    """
    bring_back(spark, table)
    info = describe(spark, table)
    let_folders_tell_of(spark, info)
    if info is not None and version_of(info.location) and has_client(spark):
        completed, _ = recover_own_journal(spark, table, info.location)
        if completed:
            spark.catalog.refreshTable(table.sql)
    return info


def own_table(spark: SparkSession, table: TableName, done: str = "optimized") -> TableInfo:
    """Return what the catalog says of a table that is served from one of our versions.

    Args:
        spark: the session.
        table: its name.
        done: what is to be done to it, for the message.

    Raises:
        ZorderError: there is no such table, or it is none of ours.
    """
    info = describe(spark, table)
    if info is None or not version_of(info.location):
        state = "does not exist" if info is None else "is not served from a version of dbt-zorder"
        if info is not None and info.provider in FORMATS:
            state = f"is {info.provider}, which has versions and commands of its own"
        msg = f"{table} {state}; only a table that was built with zorder_by can be {done}."
        raise ZorderError(msg)
    return info


def request_from_marker(spark: SparkSession, table: TableName) -> BuildRequest:
    """Return a request to build a table as its current version was built, for a table without a model.

    Raises:
        ZorderError: it is no table of ours, or its marker cannot be read.
    """
    info = own_table(spark, table)
    marker = read_marker(spark, info.location)
    if marker is None:
        msg = f"The marker of {table}'s version cannot be read, so its zorder_by is not known: name the model instead."
        raise ZorderError(msg)
    schema = spark.table(table.sql).schema
    tree = read_tree(spark, info.location, schema)
    curve = tree.layout.curve if tree is not None and tree.layout is not None else None
    spec = LayoutSpec(by=marker.zorder_by, partition_by=list(info.partition_columns))
    if curve is not None:
        spec = replace(spec, curve=curve.curve, encoding=curve.encoding)
    known: list[str] = []
    with contextlib.suppress(Exception):  # no stats, no columns beside the clustering ones
        known = [as_written(name, schema) for name in columns_type(known_stats(spark, info.location).schema).names]
    return BuildRequest(
        table,
        spec,
        stats_columns=known,
        properties=own_properties(spark, table),
        keep_versions=_ALL_VERSIONS,  # how many the model keeps is not known here
        location_root=info.location.rstrip("/").rsplit("/", 2)[0],
    )
