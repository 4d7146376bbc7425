"""Read the state of a version, its saved layout and its stats, once per batch."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from dbt_zorder.layout.hash_index import BUCKET
from dbt_zorder.layout.keys import Key, key_of
from dbt_zorder.layout.layout import Layout
from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.spark.catalog import TableInfo, TableName
from dbt_zorder.spark.columns import case_sensitive, resolve_all
from dbt_zorder.stats.listing import below_uri
from dbt_zorder.stats.schema import columns_type
from dbt_zorder.stats.store import load_stats
from dbt_zorder.stats.summary import add_up, gather, rows_by_folder, total_of
from dbt_zorder.tables.batch_size import NOT_BUILT, target_bytes
from dbt_zorder.tables.parquet.saved_layout import SavedLayout, read_tree
from dbt_zorder.tables.rewrite_policy import Overlap, overlap_of


@dataclass(frozen=True)
class ParquetState:
    """The state of a version between two batches.

    Attributes:
        location: folder of the version.
        tree: saved layout of its last whole build; None if there is no readable one.
        columns: names of the columns with stats.
        keys: clustering columns among them.
        files: result of ``summary.gather`` for ``keys``; None if the version has no readable stats.
    """

    location: str
    tree: SavedLayout | None
    columns: Sequence[str] = ()
    keys: Sequence[Key] = ()
    files: pa.Table | None = None

    @property
    def layout(self) -> Layout | None:
        """The saved layout; None if there is no readable one."""
        return None if self.tree is None else self.tree.layout

    @property
    def size(self) -> tuple[int, int]:
        """Bytes and rows of all files; zeros if the stats are missing."""
        return (0, 0) if self.files is None else total_of(self.files)

    @property
    def if_with_stats(self) -> ParquetState | None:
        """The state itself; None if the stats are missing."""
        return None if self.files is None else self

    def overlap(self, spec: LayoutSpec) -> Overlap:
        """Measure the version, which must have stats, by the bounds of its clustering columns.

        The result scales the files read after the last rewrite to a new one. F files that are boxes in k columns have
        F^((k-1)/k) along each column, in every partition.
        """
        assert self.files is not None
        now = add_up(self.files, self.keys)
        built = self.tree.built if self.tree is not None else NOT_BUILT
        trees = 1 if self.tree is None or self.tree.layout is None else self.tree.layout.trees
        rows = rows_by_folder(self.files, by_bucket=BUCKET in spec.partition_by)
        return overlap_of(rows, now, built, trees, target_bytes(spec, built, now.bytes), spec)

    def after(self, added: pa.Table, removed: Collection[str]) -> ParquetState:
        """Return the state after a batch: with its files, and without those that it replaced.

        Args:
            added: stats of the batch's files, in the form of ``files``. If their columns differ, the result has no
                files.
            removed: paths of replaced files, relative to the version's folder.
        """
        if self.files is None or _shape(added) != _shape(self.files):
            return replace(self, files=None)
        kept = self.files
        if removed:
            paths = kept.column("file_path").to_pylist()
            kept = kept.filter(pa.array([below_uri(self.location, path) not in removed for path in paths], pa.bool_()))
        return replace(self, files=pa.concat_tables([kept, added], promote_options="default"))


def read_state(spark: SparkSession, location: str, schema: StructType, spec: LayoutSpec) -> ParquetState:
    """Read the saved layout and the stats of the version at ``location``.

    Args:
        spark: the session.
        location: folder of the version.
        schema: columns of its table.
        spec: names the clustering columns if there is no saved layout.

    Raises:
        LookupError: the version has no stats.
    """
    return _with_stats(spark, ParquetState(location, read_tree(spark, location, schema)), schema, spec)


def read_state_or_layout(spark: SparkSession, location: str, schema: StructType, spec: LayoutSpec) -> ParquetState:
    """Read the state of a version that may have no readable stats."""
    state = ParquetState(location, read_tree(spark, location, schema))
    with contextlib.suppress(Exception):  # without stats the state has no files
        return _with_stats(spark, state, schema, spec)
    return state


def measure(spark: SparkSession, table: TableName, info: TableInfo, spec: LayoutSpec) -> Overlap:
    """Measure a table of versions by its stats.

    Raises:
        AnalysisException: it has no stats.
    """
    return read_state(spark, info.location, spark.table(table.sql).schema, spec).overlap(spec)


def _shape(table: pa.Table) -> list[tuple[str, pa.DataType]]:
    return [(column.name, column.type) for column in table.schema]


def _with_stats(spark: SparkSession, state: ParquetState, schema: StructType, spec: LayoutSpec) -> ParquetState:
    stats = load_stats(spark, state.location)
    tree = state.tree
    if tree is not None and tree.layout is not None:
        keys = list(tree.layout.keys)
    else:
        keys = [key_of(column) for column in resolve_all(spec.by, schema, sensitive=case_sensitive(spark))]
    columns = columns_type(stats.schema).names
    keys = [key for key in keys if key.column.name in columns]
    return replace(state, columns=columns, keys=keys, files=gather(stats, keys))
