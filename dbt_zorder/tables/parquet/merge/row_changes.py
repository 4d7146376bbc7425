"""Write the changes of rows as a new version that shares the files without a changed row, where versions can."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableInfo
from dbt_zorder.spark.columns import case_sensitive
from dbt_zorder.spark.files import has_client
from dbt_zorder.spark.location import is_same_place
from dbt_zorder.stats.collect import file_metadata
from dbt_zorder.stats.listing import below_uri, data_files
from dbt_zorder.tables.batch import same_partitions
from dbt_zorder.tables.merge import MergeColumns
from dbt_zorder.tables.parquet.buckets.bucket_files import has_same_buckets
from dbt_zorder.tables.parquet.buckets.bucket_number import with_table_buckets
from dbt_zorder.tables.parquet.build import build
from dbt_zorder.tables.parquet.incremental import version_columns
from dbt_zorder.tables.parquet.merge.matching import FileMatches, with_places
from dbt_zorder.tables.parquet.merge.next_rows import rows_after
from dbt_zorder.tables.parquet.retention.ownership import served_owner
from dbt_zorder.tables.parquet.shared_files import SharedFiles, can_share
from dbt_zorder.tables.parquet.state import read_state_or_layout
from dbt_zorder.tables.report import BuildReport
from dbt_zorder.tables.schema_change import keeps
from dbt_zorder.tables.version import root_of, version_of

_REBUILD_ABOVE = 0.6
"""Share of the table's bytes above which it is built anew: at about the same cost, and with a layout of its own."""


@dataclass(frozen=True)
class RowChanges:
    """Changes of a table's rows.

    Attributes:
        pairs: result of ``matching.match``.
        columns: columns of the match, and those that a changed row gets.
        matches: matches in each file, by its path.
        inserted: rows that are added, in the columns of the table.
        deletes: whether a changed row is deleted.
    """

    pairs: DataFrame
    columns: MergeColumns
    matches: Mapping[str, FileMatches]
    inserted: DataFrame
    deletes: bool = False

    @property
    def rows(self) -> int:
        """Number of rows that change."""
        return sum(one.changed for one in self.matches.values())

    @property
    def files(self) -> list[str]:
        """Paths of the files with a changed row."""
        return [path for path, one in self.matches.items() if one.changed]


@dataclass(frozen=True)
class TableFiles:
    """A Parquet table and its files, before and after changes of its rows.

    Attributes:
        spark: the session.
        request: the model's settings.
        info: the catalog's description of the table.
        existing, schema: columns of the table now, and after the changes.
    """

    spark: SparkSession
    request: BuildRequest
    info: TableInfo
    existing: StructType
    schema: StructType

    @cached_property
    def sizes(self) -> Mapping[str, int]:
        """Bytes of each file when it was first listed, by its path as Spark lists it."""
        return data_files(self.spark, self.info.location)

    @property
    def keeps_columns(self) -> bool:
        """Whether the table has the same columns after the changes."""
        return len(self.schema) == len(self.existing) and keeps(self.existing, self.schema)

    def rows(self, paths: Sequence[str]) -> DataFrame:
        """Return the rows in these files, with their places, read as the table is read."""
        table = self.spark.table(self.request.table.sql)
        if len(paths) < len(self.sizes):
            table = table.where(file_metadata(table).getField("file_path").isin(*paths))
        return with_places(table, self.schema)

    def write(self, changes: RowChanges, guard: Callable[[], None] | None) -> tuple[BuildReport, int]:
        """Write a new version after changes, and swap it in.

        Args:
            changes: the changes.
            guard: called just before the swap, see ``build``.

        Returns:
            The report, and the number of files that were replaced.
        """
        touched, request, spec = changes.files, self.request, self.request.spec
        shared = self._shared(touched)
        if shared is None:
            touched = list(self.sizes)
        else:
            # the weights belong to the model's columns, which may differ from the table's
            by = version_columns(self.spark, shared.state, self.request, self.schema)
            request, spec = self._used, replace(spec, by=by, weights=None)
        after = rows_after(
            self.rows(touched), self.schema.names, changes.pairs, changes.columns, changes.rows, deletes=changes.deletes
        )
        rows = after.unionAll(changes.inserted)
        return build(self.spark, rows, replace(request, spec=spec), guard, self.info, shared), len(touched)

    @cached_property
    def _used(self) -> BuildRequest:
        """Settings by which rows go into a version that shares files: with the table's own buckets."""
        sensitive = case_sensitive(self.spark)
        return with_table_buckets(self.info, self.request, self.schema, sensitive=sensitive)

    def _shared(self, touched: Sequence[str]) -> SharedFiles | None:
        """Return the files that the next version shares with the one that is served; None if all rows are written."""
        spark, request, info = self.spark, self._used, self.info
        if not (version_of(info.location) and has_client(spark) and can_share(spark, info.location)):
            return None
        if len(touched) == len(self.sizes):
            return None
        if sum(self.sizes[path] for path in touched) > _REBUILD_ABOVE * sum(self.sizes.values()):
            return None
        if not keeps(self.existing, self.schema) or not same_partitions(spark, info, request, self.schema):
            return None
        if not has_same_buckets(spark, info, request, self.schema):
            return None
        root = root_of(spark, request.table, request.location_root)
        if not is_same_place(root, info.location.rstrip("/").rpartition("/")[0]):
            return None
        if served_owner(spark, request.table, info.location).refused:
            return None
        state = read_state_or_layout(spark, info.location, self.schema, request.spec)
        if state.files is None or state.layout is None:
            return None
        stays = {path: size for path, size in self.sizes.items() if path not in {*touched}}
        return SharedFiles(spark, state, {below_uri(info.location, path): size for path, size in stays.items()})
