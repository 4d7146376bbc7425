"""What the metadata of a format say of a table, read once for all that a batch asks of them."""

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
class Standing:
    """A table of Delta Lake or Iceberg between two batches.

    Attributes:
        version: of the table, as of ``FormatState``.
        built: its figures when it was last laid out whole; zeros where its log does not tell.
        keys: the clustering columns; none if their bounds could not be read.
        files: as ``summary.gather`` gives them for ``keys``.
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
        """The bytes of each file, by its path."""
        return dict(
            zip(self.files.column("file_path").to_pylist(), self.files.column("file_size").to_pylist(), strict=True)
        )

    def overlap(self, spec: LayoutSpec) -> Overlap:
        """Measure the table by the bounds of its clustering columns."""
        now, rows = add_up_format(self.files, self.keys), rows_by_folder(self.files)
        return overlap_of(rows, now, self.built, max(1, len(rows)), target_bytes(spec, self.built, now.bytes), spec)


def read_standing(
    spark: SparkSession,
    form: Format,
    request: BuildRequest,
    built: Summary | None = None,
    state: FormatState | None = None,
    keys: Sequence[Key] | None = None,
) -> Standing:
    """Read what a format says of a table.

    Args:
        spark: the session.
        form: of the table.
        request: of the model.
        built: what is known of its last whole layout.
        state: of the table; None for that of now.
        keys: the clustering columns; None if they are to be looked for among the table's.

    Raises:
        ColumnError: it has no such columns as ``zorder_by`` names.
        Exception: whatever keeps the format's metadata from being read.
    """
    keys = keys or keys_for(spark.table(request.table.sql), request.spec)
    state = state or state_of(spark, form.name, request.table)
    stats = state.known([key.column for key in keys])
    return Standing(state.version, built or form.last_whole(state), keys, gather(stats, keys))


def known_standing(
    spark: SparkSession,
    form: Format,
    request: BuildRequest,
    built: Summary | None = None,
    state: FormatState | None = None,
    keys: Sequence[Key] | None = None,
) -> Standing:
    """Read the same of a table whose clustering columns may have no bounds that can be read.

    Raises:
        Exception: whatever keeps the format's metadata from being read at all.
    """
    try:
        return read_standing(spark, form, request, built, state, keys)
    except Exception:  # such figures are not worth failing for
        state = state_of(spark, form.name, request.table)  # of an older one files may be gone by now
        return Standing(state.version, built or form.last_whole(state), [], gather(state.known([]), []))


def behind_append(
    spark: SparkSession,
    form: Format,
    request: BuildRequest,
    standing: Standing,
    own: Mapping[str, int] | None = None,
) -> Standing:
    """Read what a format says of a table to which files were added.

    If but one commit came upon the version that it was of, that one alone is read where a log has its files apart.

    Args:
        spark: the session.
        form: of the table.
        request: of the model.
        standing: of the table as it was.
        own: bytes of each file by its path, where this process wrote them: then their footers are read.

    Raises:
        Exception: whatever keeps the format's metadata from being read.
    """
    state = state_of(spark, form.name, request.table)
    if standing.keys:
        try:
            added = form.added(state, standing.version, request, [key.column for key in standing.keys], own)
            if added is not None:
                rows = gather(added, standing.keys).cast(standing.files.schema)
                files = pa.concat_tables([standing.files, rows])
                return replace(standing, version=state.version, files=files)
        except Exception as exc:
            _LOG.debug("all files of %s are asked for, not those of the last commit: %s", request.table, exc)
    return known_standing(spark, form, request, standing.built, state, standing.keys)


def version_of(spark: SparkSession, provider: str, table: TableName) -> str:
    """Return the version number of a Delta table, or the snapshot id of an Iceberg table."""
    return state_of(spark, provider, table).version
