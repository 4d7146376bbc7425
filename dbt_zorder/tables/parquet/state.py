"""What a version is known to hold: its tree and its stats, each read once for all that a batch asks of them."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from dbt_zorder.layout.keys import Key, key_of
from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.spark.columns import case_sensitive, resolve_all
from dbt_zorder.stats.schema import columns_type
from dbt_zorder.stats.store import known_stats
from dbt_zorder.stats.summary import gather, total_of
from dbt_zorder.tables.parquet.listing import below_uri
from dbt_zorder.tables.parquet.saved_layout import Tree, read_tree


@dataclass(frozen=True)
class Standing:
    """A version between two batches.

    Attributes:
        location: its folder.
        tree: of its last whole build; None if there is none that can be read.
        columns: names of the columns that it has stats of.
        keys: the clustering columns among them.
        files: as ``summary.gather`` gives them for ``keys``; None if it has no stats that can be read.
    """

    location: str
    tree: Tree | None
    columns: Sequence[str] = ()
    keys: Sequence[Key] = ()
    files: pa.Table | None = None

    @property
    def size(self) -> tuple[int, int]:
        """Bytes and rows of all files; zeros if they are not known."""
        return (0, 0) if self.files is None else total_of(self.files)

    def after(self, added: pa.Table, removed: Collection[str]) -> Standing:
        """Return the version with the files of a batch, without those that it replaced.

        Args:
            added: as ``files``, for the same keys; else no files are known any more.
            removed: paths from the version's folder.
        """
        if self.files is None or _shape(added) != _shape(self.files):
            return replace(self, files=None)
        kept = self.files
        if removed:
            paths = kept.column("file_path").to_pylist()
            kept = kept.filter(pa.array([below_uri(self.location, path) not in removed for path in paths], pa.bool_()))
        return replace(self, files=pa.concat_tables([kept, added], promote_options="default"))


def read_standing(spark: SparkSession, location: str, schema: StructType, spec: LayoutSpec) -> Standing:
    """Read tree and stats of the version at ``location``.

    Args:
        spark: the session.
        location: of the version.
        schema: of its table.
        spec: names the clustering columns where no tree does.

    Raises:
        LookupError: it has no stats.
    """
    return _with_stats(spark, Standing(location, read_tree(spark, location, schema)), schema, spec)


def known_standing(spark: SparkSession, location: str, schema: StructType, spec: LayoutSpec) -> Standing:
    """Read the same of a version that may have no stats, or none that can be read."""
    standing = Standing(location, read_tree(spark, location, schema))
    with contextlib.suppress(Exception):  # no stats, no help
        return _with_stats(spark, standing, schema, spec)
    return standing


def _shape(table: pa.Table) -> list[tuple[str, pa.DataType]]:
    return [(column.name, column.type) for column in table.schema]


def _with_stats(spark: SparkSession, standing: Standing, schema: StructType, spec: LayoutSpec) -> Standing:
    stats = known_stats(spark, standing.location)
    tree = standing.tree
    if tree is not None and tree.layout is not None:
        keys = list(tree.layout.keys)
    else:
        keys = [key_of(column) for column in resolve_all(spec.by, schema, sensitive=case_sensitive(spark))]
    columns = columns_type(stats.schema).names
    keys = [key for key in keys if key.column.name in columns]
    return replace(standing, columns=columns, keys=keys, files=gather(stats, keys))
