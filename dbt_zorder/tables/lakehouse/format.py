"""Define what each lakehouse format implements in its own way; shared code is in this folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableInfo, TableName
from dbt_zorder.spark.columns import ResolvedColumn
from dbt_zorder.stats.arrow_store import LocalStats
from dbt_zorder.stats.summary import Summary
from dbt_zorder.stats.table_state import FormatState
from dbt_zorder.tables.lakehouse.sink import Sink

NOTE, WHOLE = "dbt_zorder", "whole"
"""The key and the value by which a commit states that it laid out the whole table."""


@dataclass(frozen=True)
class KeptProperties:
    """The properties of a table that survive the replacement of its rows.

    Attributes:
        in_place: whether the table stays, and only its rows are replaced.
        properties: the properties of the re-created table, CHECK constraints among them, if it does not stay.
    """

    in_place: bool = False
    properties: Mapping[str, str] = field(default_factory=dict)


NOTHING_KEPT = KeptProperties()


class Format(Protocol):
    """A format of lakehouse tables."""

    @property
    def name(self) -> str:
        """The provider of its tables in the catalog."""

    @property
    def sink(self) -> Sink:
        """The commits that this process makes without Spark's writer."""

    @property
    def options(self) -> Mapping[str, str]:
        """Writer options that stop Spark from moving rows or splitting files."""

    @property
    def defaults(self) -> Mapping[str, str]:
        """Writer options that a model may override."""

    @property
    def moves_folders(self) -> bool:
        """Whether Spark renames the folder of a managed table with the table."""

    def whole_layout_note(self, token: str) -> dict[str, str]:
        """Return the writer options that note a whole layout and its token in the commit."""

    def convert_types(self, df: DataFrame, request: BuildRequest) -> DataFrame:
        """Convert a query to the types and values that the format stores.

        Raises:
            ColumnError: two columns have one name, or ``partition_by`` names none.
        """

    def statistics(self, df: DataFrame, request: BuildRequest, keys: Sequence[ResolvedColumn]) -> dict[str, str]:
        """Return the table properties that keep statistics of the z-order columns.

        Raises:
            ConfigError: the user's properties leave a z-order column without statistics.
        """

    def has_whole_bounds(self, request: BuildRequest, keys: Sequence[ResolvedColumn]) -> bool:
        """Return whether a table stores untruncated bounds of the z-order columns."""

    def forget_columns(self, spark: SparkSession, table: TableName, schema: StructType) -> None:
        """Remove the properties of dropped columns that block changes of the table."""

    def properties_to_keep(
        self, spark: SparkSession, info: TableInfo, df: DataFrame, request: BuildRequest
    ) -> KeptProperties:
        """Return what survives when an incremental run replaces all rows of a table by those of ``df``."""

    def set_properties(self, spark: SparkSession, table: TableName, wanted: Mapping[str, str]) -> None:
        """Set the current properties of the model on a table that is replaced in place."""

    def last_whole_layout(self, state: FormatState) -> Summary:
        """Return files, rows and bytes after the last whole layout; zeros where the log has none."""

    def added(
        self,
        state: FormatState,
        before: str,
        request: BuildRequest,
        columns: Sequence[ResolvedColumn],
        own: Mapping[str, int] | None,
    ) -> DataFrame | LocalStats | None:
        """Return the stats of the files of one commit.

        Return None if there were more commits, or if its files cannot be separated.

        Args:
            state: the table after the commit.
            before: the version before the commit.
            request: the settings of the model.
            columns: the columns whose bounds are returned.
            own: the bytes of the files that this process wrote, by path; None if Spark wrote them.
        """

    def lost(self, spark: SparkSession, table: TableName, before: str, token: str) -> str:
        """Return where to find the rows of commits that a replacement left out; an empty string if there are none."""

    def rewrite_natively(self, spark: SparkSession, request: BuildRequest, columns: Sequence[str]) -> None:
        """Z-order a table with the format's own command, by columns that are already quoted."""

    def rewrite_statement(self, table: TableName, columns: Sequence[str]) -> str:
        """Return the statement of that command."""

    def rewrite_by_spark(self, clustered: DataFrame, request: BuildRequest, info: TableInfo, before: str) -> None:
        """Replace all rows of a table by the same rows, clustered, with Spark's writer.

        Raises:
            BuildError: another commit followed the version ``before``; the table has the rows of both.
            LostRowsError: another commit followed, and the replacement cannot be undone.
        """
