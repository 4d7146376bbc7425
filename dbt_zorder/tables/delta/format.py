"""What Delta Lake does in its own way; see ``lakehouse.format.Format``."""

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
from dbt_zorder.tables.delta.kept_properties import carried, set_properties
from dbt_zorder.tables.delta.properties import has_whole_bounds, statistics_columns
from dbt_zorder.tables.delta.rewrite import overwrite
from dbt_zorder.tables.delta.sink import DeltaSink
from dbt_zorder.tables.delta.types import in_delta_types
from dbt_zorder.tables.lakehouse.format import NOTE, WHOLE, Carried


class DeltaFormat:
    """Delta Lake."""

    name = "delta"
    sink = DeltaSink()
    options: Mapping[str, str] = {"optimizeWrite": "false"}
    defaults: Mapping[str, str] = {"maxRecordsPerFile": "0"}
    """A limit of the session would cut files apart."""
    moves_folders = True

    def whole_note(self, token: str) -> dict[str, str]:
        """Return the writer options by which a commit says that it lays out all of a table, and its token."""
        return {"userMetadata": json.dumps({NOTE: WHOLE, "token": token})}

    def in_its_types(self, df: DataFrame, request: BuildRequest) -> DataFrame:
        """Return a query in the types and values that the format keeps."""
        return in_delta_types(df, request)

    def statistics(self, df: DataFrame, request: BuildRequest, keys: Sequence[ResolvedColumn]) -> dict[str, str]:
        """Return the table properties by which the z-order columns keep statistics."""
        return statistics_columns(df, request, keys)

    def has_whole_bounds(self, request: BuildRequest, keys: Sequence[ResolvedColumn]) -> bool:
        """Return whether a table keeps bounds of the z-order columns uncut."""
        return has_whole_bounds(keys)

    def forget_columns(self, spark: SparkSession, table: TableName, schema: StructType) -> None:
        """Do nothing: no property of Delta's keeps a table from being altered."""

    def carried(self, spark: SparkSession, info: TableInfo, df: DataFrame, request: BuildRequest) -> Carried:
        """Return what an incremental run that replaces all rows of a table by those of ``df`` keeps of it."""
        return carried(spark, info, df, request)

    def set_properties(self, spark: SparkSession, table: TableName, wanted: Mapping[str, str]) -> None:
        """Give a table that is replaced in place the properties that its model has by now."""
        set_properties(spark, table, wanted)

    def last_whole(self, state: FormatState) -> Summary:
        """Return files, rows and bytes after the last whole layout; zeros where the log does not say."""
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
        """Return the stats of the files of one commit, by the log; None if there were more."""
        return state.added(columns, before) if isinstance(state, DeltaState) else None

    def lost(self, spark: SparkSession, table: TableName, before: str, token: str) -> str:
        """Return where the rows of commits are that a replacement left out, an empty string if there are none."""
        return lost_commits(spark, table, before, token)

    def rewrite_natively(self, spark: SparkSession, request: BuildRequest, columns: Sequence[str]) -> None:
        """Z-order a table by the format's own command, by columns that are quoted already."""
        spark.sql(f"OPTIMIZE {request.table.sql} ZORDER BY ({', '.join(columns)})").collect()

    def rewrite_by_spark(self, clustered: DataFrame, request: BuildRequest, info: TableInfo, before: str) -> None:
        """Let Spark replace all rows of a table by themselves, clustered."""
        overwrite(self, clustered, request, info, before)


DELTA = DeltaFormat()
