"""Implement ``lakehouse.format.Format`` for Iceberg."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableInfo, TableName
from dbt_zorder.spark.columns import ResolvedColumn
from dbt_zorder.spark.sql import quote_string
from dbt_zorder.stats.arrow_store import LocalStats
from dbt_zorder.stats.footers import stats_of_files
from dbt_zorder.stats.iceberg.manifests import IcebergState, iceberg_state
from dbt_zorder.stats.summary import Summary
from dbt_zorder.stats.table_state import FormatState
from dbt_zorder.tables.batch_size import NOT_BUILT
from dbt_zorder.tables.iceberg.history import LAST_NATIVE, last_layout
from dbt_zorder.tables.iceberg.lost_commits import TOKEN, lost_commits
from dbt_zorder.tables.iceberg.properties import forget_columns, has_whole_bounds, metrics_modes
from dbt_zorder.tables.iceberg.sink import IcebergSink
from dbt_zorder.tables.iceberg.types import in_iceberg_types
from dbt_zorder.tables.lakehouse.format import NOTE, NOTHING_KEPT, WHOLE, KeptProperties
from dbt_zorder.tables.lakehouse.spark_writer import writer

_NEVER_ROLLED = 1 << 50


class IcebergFormat:
    """Iceberg as a lakehouse format."""

    name = "iceberg"
    sink = IcebergSink()
    options: Mapping[str, str] = {
        # no shuffle, no sort by the table's own order, one file a partition and task of any size
        "use-table-distribution-and-ordering": "false",
        "distribution-mode": "none",
        "fanout-enabled": "true",
        "target-file-size-bytes": str(_NEVER_ROLLED),
    }
    defaults: Mapping[str, str] = {}
    moves_folders = False

    def whole_layout_note(self, token: str) -> dict[str, str]:
        """Return the writer options that note a whole layout and its token in the commit."""
        return {f"snapshot-property.{NOTE}": WHOLE, f"snapshot-property.{TOKEN}": token}

    def convert_types(self, df: DataFrame, request: BuildRequest) -> DataFrame:
        """Convert a query to the types and values that the format stores."""
        return in_iceberg_types(df)

    def statistics(self, df: DataFrame, request: BuildRequest, keys: Sequence[ResolvedColumn]) -> dict[str, str]:
        """Return the table properties that keep statistics of the z-order columns."""
        return metrics_modes(df, request, keys)

    def has_whole_bounds(self, request: BuildRequest, keys: Sequence[ResolvedColumn]) -> bool:
        """Return whether a table stores untruncated bounds of the z-order columns."""
        return has_whole_bounds(request, keys)

    def forget_columns(self, spark: SparkSession, table: TableName, schema: StructType) -> None:
        """Remove the properties of dropped columns, which block changes of the table."""
        forget_columns(spark, table, schema)

    def properties_to_keep(
        self, spark: SparkSession, info: TableInfo, df: DataFrame, request: BuildRequest
    ) -> KeptProperties:
        """Return nothing: Iceberg keeps the properties of a replaced table, and has no constraints."""
        return NOTHING_KEPT

    def set_properties(self, spark: SparkSession, table: TableName, wanted: Mapping[str, str]) -> None:
        """Do nothing: no Iceberg table is replaced in place."""

    def last_whole_layout(self, state: FormatState) -> Summary:
        """Return files, rows and bytes after the last whole layout; zeros where no snapshot notes one."""
        found = last_layout(state) if isinstance(state, IcebergState) else None
        return Summary(*found, {}) if found else NOT_BUILT

    def added(
        self,
        state: FormatState,
        before: str,
        request: BuildRequest,
        columns: Sequence[ResolvedColumn],
        own: Mapping[str, int] | None,
    ) -> DataFrame | LocalStats | None:
        """Return the stats of the files of one commit, from their footers; None if Spark wrote them."""
        if own is None or not isinstance(state, IcebergState) or not has_whole_bounds(request, columns):
            return None
        is_next = state.snapshot is not None and str(state.snapshot.parentId()) == before
        return stats_of_files(state.spark, own, columns, "") if is_next else None

    def lost(self, spark: SparkSession, table: TableName, before: str, token: str) -> str:
        """Return where to find the rows of commits that a replacement left out; an empty string if there are none."""
        return lost_commits(spark, table, before, token)

    def rewrite_natively(self, spark: SparkSession, request: BuildRequest, columns: Sequence[str]) -> None:
        """Z-order a table with the format's own procedure, and note the resulting snapshot."""
        spark.sql(self.rewrite_statement(request.table, columns)).collect()
        made = iceberg_state(spark, request.table).version
        spark.sql(f"ALTER TABLE {request.table.sql} SET TBLPROPERTIES ('{LAST_NATIVE}' = '{made}')")

    def rewrite_statement(self, table: TableName, columns: Sequence[str]) -> str:
        """Return the call of that procedure."""
        arguments = {"table": str(table), "strategy": "sort", "sort_order": f"zorder({', '.join(columns)})"}
        listed = ", ".join(f"{name} => {quote_string(value)}" for name, value in arguments.items())
        return f"CALL spark_catalog.system.rewrite_data_files({listed}, options => map('rewrite-all', 'true'))"

    def rewrite_by_spark(self, clustered: DataFrame, request: BuildRequest, info: TableInfo, before: str) -> None:
        """Replace all rows of a table by the same rows, clustered, with Spark's writer."""
        made = writer(self, clustered, request.table, request, whole=True)
        # Iceberg itself rejects the commit if rows were added after that snapshot
        made = made.option("isolation-level", "serializable").option("validate-from-snapshot-id", before)
        made.overwrite(f.lit(True))


ICEBERG = IcebergFormat()
