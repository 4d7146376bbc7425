"""Read the state of a table from its format's metadata, once for each batch."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import SparkSession

from dbt_zorder.layout.keys import Key
from dbt_zorder.layout.spec import LayoutSpec, keys_for
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableName
from dbt_zorder.stats.summary import Summary, add_up_format, gather, rows_by_folder, total_of
from dbt_zorder.stats.table_state import FormatState, state_of
from dbt_zorder.tables.batch_size import target_bytes
from dbt_zorder.tables.lakehouse.format import Format
from dbt_zorder.tables.rewrite_policy import Overlap, overlap_of

_LOG = logging.getLogger("dbt_zorder")


@dataclass(frozen=True)
class LakehouseState:
    """The state of a Delta Lake or Iceberg table between two batches.

    Attributes:
        version: the table's version, in the form of ``FormatState.version``.
        built: the figures of its last whole layout; zeros where the log has none.
        keys: the clustering keys; empty if their bounds could not be read.
        files: one row a file, as ``summary.gather`` returns it for ``keys``.
    """

    version: str
    built: Summary
    keys: Sequence[Key]
    files: pa.Table

    @property
    def size(self) -> tuple[int, int]:
        """Bytes and rows of all files."""
        return total_of(self.files)

    @property
    def bytes_of(self) -> Mapping[str, int]:
        """The bytes of each file by path."""
        return dict(
            zip(self.files.column("file_path").to_pylist(), self.files.column("file_size").to_pylist(), strict=True)
        )

    def overlap(self, spec: LayoutSpec) -> Overlap:
        """Measure the overlap of the files by the bounds of the clustering keys."""
        now, rows = add_up_format(self.files, self.keys), rows_by_folder(self.files)
        return overlap_of(rows, now, self.built, max(1, len(rows)), target_bytes(spec, self.built, now.bytes), spec)


def read_state(
    spark: SparkSession,
    form: Format,
    request: BuildRequest,
    built: Summary | None = None,
    state: FormatState | None = None,
    keys: Sequence[Key] | None = None,
) -> LakehouseState:
    """Read the state of a table from its format's metadata.

    Args:
        spark: the session.
        form: the format of the table.
        request: the settings of the model.
        built: the figures of the last whole layout, if they were already read.
        state: the metadata of the table; None to read it now.
        keys: the clustering keys; None to resolve them among the table's columns.

    Raises:
        ColumnError: the table lacks a column of ``zorder_by``.
        Exception: the format's metadata cannot be read.
    """
    keys = keys or keys_for(spark.table(request.table.sql), request.spec)
    state = state or state_of(spark, form.name, request.table)
    stats = state.load_stats([key.column for key in keys])
    return LakehouseState(state.version, built or form.last_whole_layout(state), keys, gather(stats, keys))


def read_state_or_sizes(
    spark: SparkSession,
    form: Format,
    request: BuildRequest,
    built: Summary | None = None,
    state: FormatState | None = None,
    keys: Sequence[Key] | None = None,
) -> LakehouseState:
    """Read the same state; return it without clustering keys if their bounds cannot be read.

    Raises:
        Exception: the format's metadata cannot be read at all.
    """
    try:
        return read_state(spark, form, request, built, state, keys)
    except Exception:  # a run must not fail for missing bounds
        state = state_of(spark, form.name, request.table)  # files of an older state may be deleted by now
        return LakehouseState(
            state.version, built or form.last_whole_layout(state), [], gather(state.load_stats([]), [])
        )


def state_after_append(
    spark: SparkSession,
    form: Format,
    request: BuildRequest,
    earlier: LakehouseState,
    own: Mapping[str, int] | None = None,
) -> LakehouseState:
    """Read the state of a table after files were added.

    If exactly one commit followed the earlier version, read only that commit where the log separates its files.

    Args:
        spark: the session.
        form: the format of the table.
        request: the settings of the model.
        earlier: the state before the files were added.
        own: the bytes of each file by path, if this process wrote them; their footers are then read.

    Raises:
        Exception: the format's metadata cannot be read.
    """
    state = state_of(spark, form.name, request.table)
    if earlier.keys:
        try:
            added = form.added(state, earlier.version, request, [key.column for key in earlier.keys], own)
            if added is not None:
                rows = gather(added, earlier.keys).cast(earlier.files.schema)
                files = pa.concat_tables([earlier.files, rows])
                return replace(earlier, version=state.version, files=files)
        except Exception as exc:
            _LOG.debug("all files of %s are asked for, not those of the last commit: %s", request.table, exc)
    return read_state_or_sizes(spark, form, request, earlier.built, state, earlier.keys)


def current_version(spark: SparkSession, provider: str, table: TableName) -> str:
    """Return the version number of a Delta table, or the snapshot id of an Iceberg table."""
    return state_of(spark, provider, table).version
