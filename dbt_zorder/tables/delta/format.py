"""Implement ``lakehouse.format.Format`` for Delta Lake."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableInfo, TableName
from dbt_zorder.spark.columns import ResolvedColumn
from dbt_zorder.stats.arrow_store import LocalStats
from dbt_zorder.stats.delta.log import DeltaState
from dbt_zorder.stats.summary import Summary
from dbt_zorder.stats.table_state import FormatState
from dbt_zorder.tables.batch_size import NOT_BUILT
from dbt_zorder.tables.delta.history import last_layout, lost_commits
from dbt_zorder.tables.delta.kept_properties import properties_to_keep, set_properties
from dbt_zorder.tables.delta.properties import has_whole_bounds, statistics_columns
from dbt_zorder.tables.delta.rewrite import overwrite
from dbt_zorder.tables.delta.sink import DeltaSink
from dbt_zorder.tables.delta.types import in_delta_types
from dbt_zorder.tables.lakehouse.format import NOTE, WHOLE, KeptProperties


class DeltaFormat:
    """Delta Lake as a lakehouse format."""

    name = "delta"
    sink = DeltaSink()
    options: Mapping[str, str] = {"optimizeWrite": "false"}
    defaults: Mapping[str, str] = {"maxRecordsPerFile": "0"}
    """Without it, a limit set in the session would split files."""
    moves_folders = True

    def whole_layout_note(self, token: str) -> dict[str, str]:
        """Return the writer options that note a whole layout and its token in the commit."""
        return {"userMetadata": json.dumps({NOTE: WHOLE, "token": token})}

    def convert_types(self, df: DataFrame, request: BuildRequest) -> DataFrame:
        """Convert a query to the types and values that the format stores."""
        return in_delta_types(df, request)

    def statistics(self, df: DataFrame, request: BuildRequest, keys: Sequence[ResolvedColumn]) -> dict[str, str]:
        """Return the table properties that keep statistics of the z-order columns."""
        return statistics_columns(df, request, keys)

    def has_whole_bounds(self, request: BuildRequest, keys: Sequence[ResolvedColumn]) -> bool:
        """Return whether a table stores untruncated bounds of the z-order columns."""
        return has_whole_bounds(keys)

    def forget_columns(self, spark: SparkSession, table: TableName, schema: StructType) -> None:
        """Do nothing: no Delta property blocks changes of a table."""

    def properties_to_keep(
        self, spark: SparkSession, info: TableInfo, df: DataFrame, request: BuildRequest
    ) -> KeptProperties:
        """Return what survives when an incremental run replaces all rows of a table by those of ``df``."""
        return properties_to_keep(spark, info, df, request)

    def set_properties(self, spark: SparkSession, table: TableName, wanted: Mapping[str, str]) -> None:
        """Set the current properties of the model on a table that is replaced in place."""
        set_properties(spark, table, wanted)

    def last_whole_layout(self, state: FormatState) -> Summary:
        """Return files, rows and bytes after the last whole layout; zeros where the log has none."""
        found = last_layout(state) if isinstance(state, DeltaState) else None
        return Summary(*found, {}) if found else NOT_BUILT

    def added(
        self,
        state: FormatState,
        before: str,
        request: BuildRequest,
        columns: Sequence[ResolvedColumn],
        own: Mapping[str, int] | None,
    ) -> DataFrame | LocalStats | None:
        """Return the stats of the files of one commit, from the log; None if there were more commits."""
        return state.added(columns, before) if isinstance(state, DeltaState) else None

    def lost(self, spark: SparkSession, table: TableName, before: str, token: str) -> str:
        """Return where to find the rows of commits that a replacement left out; an empty string if there are none."""
        return lost_commits(spark, table, before, token)

    def rewrite_natively(self, spark: SparkSession, request: BuildRequest, columns: Sequence[str]) -> None:
        """Z-order a table with the format's own command, by columns that are already quoted."""
        spark.sql(self.rewrite_statement(request.table, columns)).collect()

    def rewrite_statement(self, table: TableName, columns: Sequence[str]) -> str:
        """Return that command."""
        return f"OPTIMIZE {table.sql} ZORDER BY ({', '.join(columns)})"

    def rewrite_by_spark(self, clustered: DataFrame, request: BuildRequest, info: TableInfo, before: str) -> None:
        """Replace all rows of a table by the same rows, clustered, with Spark's writer."""
        overwrite(self, clustered, request, info, before)


DELTA = DeltaFormat()
