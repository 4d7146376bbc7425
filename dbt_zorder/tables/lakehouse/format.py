"""What one lakehouse format does otherwise than the other; all that they share stands in this folder."""

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
"""Under what, and by what, a commit says that it laid out all of a table."""


@dataclass(frozen=True)
class Carried:
    """What the rows' replacement leaves.

    Attributes:
        in_place: the table stays as it is, and only its rows are replaced.
        properties: CHECK constraints among them, that the table is made with again where it does not.
    """

    in_place: bool = False
    properties: Mapping[str, str] = field(default_factory=dict)


NOTHING = Carried()


class Format(Protocol):
    """One format of lakehouse tables."""

    @property
    def name(self) -> str:
        """The provider of its tables in the catalog."""

    @property
    def sink(self) -> Sink:
        """The commits that this process makes itself."""

    @property
    def options(self) -> Mapping[str, str]:
        """Writer options by which Spark leaves rows and files as they come."""

    @property
    def defaults(self) -> Mapping[str, str]:
        """Writer options that a model may set otherwise."""

    @property
    def moves_folders(self) -> bool:
        """Whether Spark renames the folder of a managed table with the table."""

    def whole_note(self, token: str) -> dict[str, str]:
        """Return the writer options by which a commit says that it lays out all of a table, and its token."""

    def in_its_types(self, df: DataFrame, request: BuildRequest) -> DataFrame:
        """Return a query in the types and values that the format keeps.

        Raises:
            ColumnError: two columns have one name, or ``partition_by`` names none.
        """

    def statistics(self, df: DataFrame, request: BuildRequest, keys: Sequence[ResolvedColumn]) -> dict[str, str]:
        """Return the table properties by which the z-order columns keep statistics.

        Raises:
            ConfigError: the user's properties leave a z-order column without statistics.
        """

    def has_whole_bounds(self, request: BuildRequest, keys: Sequence[ResolvedColumn]) -> bool:
        """Return whether a table keeps bounds of the z-order columns uncut."""

    def forget_columns(self, spark: SparkSession, table: TableName, schema: StructType) -> None:
        """Remove the properties of columns that a table lacks by now, where they keep it from being altered."""

    def carried(self, spark: SparkSession, info: TableInfo, df: DataFrame, request: BuildRequest) -> Carried:
        """Return what an incremental run that replaces all rows of a table by those of ``df`` keeps of it."""

    def set_properties(self, spark: SparkSession, table: TableName, wanted: Mapping[str, str]) -> None:
        """Give a table that is replaced in place the properties that its model has by now."""

    def last_whole(self, state: FormatState) -> Summary:
        """Return files, rows and bytes after the last whole layout; zeros where the log does not say."""

    def added(
        self,
        state: FormatState,
        before: str,
        request: BuildRequest,
        columns: Sequence[ResolvedColumn],
        own: Mapping[str, int] | None,
    ) -> DataFrame | LocalStats | None:
        """Return the stats of the files of one commit; None if there were more, or its files are not apart.

        Args:
            state: the table with the commit.
            before: the version that it came upon.
            request: of the model.
            columns: to return bounds of.
            own: bytes by path of the files that this process wrote; None if Spark did.
        """

    def lost(self, spark: SparkSession, table: TableName, before: str, token: str) -> str:
        """Return where the rows of commits are that a replacement left out, an empty string if there are none."""

    def rewrite_natively(self, spark: SparkSession, request: BuildRequest, columns: Sequence[str]) -> None:
        """Z-order a table by the format's own command, by columns that are quoted already."""

    def rewrite_by_spark(self, clustered: DataFrame, request: BuildRequest, info: TableInfo, before: str) -> None:
        """Let Spark replace all rows of a table by themselves, clustered.

        Raises:
            BuildError: another commit came upon the version ``before``; the table has all rows of both.
            LostRowsError: it did, and cannot be taken back.
        """
