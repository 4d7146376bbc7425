"""Plan the layout of a batch: by the saved layout of its version, if that can separate the rows."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import DataFrame

from dbt_zorder.engine.local.place import count_cells_locally
from dbt_zorder.engine.plan import plan_layout
from dbt_zorder.engine.spark.cells import count_cells
from dbt_zorder.layout.batches import one_file_layout, regroup
from dbt_zorder.layout.file_count import SPLIT_ABOVE, parse_size, row_bytes_in_files
from dbt_zorder.layout.known_keys import FetchedKeys, KnownKeys, count_of
from dbt_zorder.layout.layout import Layout
from dbt_zorder.layout.page_order import batch_levels, page_levels, page_rows_of
from dbt_zorder.request import BuildRequest, stats_columns
from dbt_zorder.spark.columns import ResolvedColumn, case_sensitive, quote_column, resolve
from dbt_zorder.spark.small_queries import SMALL_BYTES, estimated_bytes
from dbt_zorder.tables.batch_size import NOT_BUILT, files_of_batch, target_bytes
from dbt_zorder.tables.parquet.state import ParquetState


def plan_batch(
    df: DataFrame, request: BuildRequest, state: ParquetState, *, fresh: bool, known: KnownKeys = None
) -> Layout:
    """Return the layout of a batch: by the saved layout of its version if that can separate the rows.

    Args:
        df: the batch.
        request: the model's settings.
        state: state of the version.
        fresh: whether the batch consists of whole partitions, which are best laid out on their own.
        known: keys of the batch's rows or of a sample, for the saved layout's columns; or the number of rows; or None
            if neither is available.
    """
    fetched = known if isinstance(known, FetchedKeys) else None
    rows = count_of(known)
    tree = state.tree
    table_bytes, table_rows = state.size
    if fresh:
        row_bytes = row_bytes_in_files(state.files, parse_size(request.spec.file_size))
        return plan_layout(df, replace(request.spec, row_bytes=row_bytes), known)
    partitioned = tree is not None and tree.layout is not None and bool(tree.layout.partition_columns)
    if request.spec.files is not None and tree is not None:
        count = df.count() if rows is None else rows
        files = files_of_batch(request.spec, tree.built, table_rows, count, partitioned=partitioned)
        if files is not None:
            by = request.spec.by if tree.layout is None else [key.column.sql for key in tree.layout.keys]
            apart = replace(request.spec, by=by, weights=None, files=files)
            return plan_layout(df, apart, count if known is None else known)
    target = target_bytes(request.spec, tree.built if tree is not None else NOT_BUILT, table_bytes)
    row_bytes = row_bytes_in_files(state.files, target)
    spec = replace(request.spec, row_bytes=row_bytes)
    if tree is not None and tree.layout is not None:
        # small files overestimate the row size, never underestimate it: a batch of one file by it is one file
        most_bytes = row_bytes or (table_bytes / table_rows if table_rows else 0.0)
        # a batch that Spark estimates above one file is likely split, and its cells also give the number of rows
        cut = rows is None and SPLIT_ABOVE * target < (estimated_bytes(df) or 0) <= SMALL_BYTES
        alone = False
        if most_bytes and not cut and not partitioned:
            # most batches are smaller than a file, and their count often needs only metadata
            rows = df.count() if rows is None else rows
            alone = rows * most_bytes <= SPLIT_ABOVE * target
            whole = _whole(df, tree.layout, rows, request) if alone else None
            if whole is not None:
                return whole
        counts = None
        if most_bytes and not alone and fetched is not None:
            counts = count_cells_locally(fetched.keys, tree.layout)
        elif most_bytes and not alone:
            counts = count_cells(df, tree.layout, rows, small=cut)
        if counts is not None and (row_bytes or counts.sum() * most_bytes <= SPLIT_ABOVE * target):
            layout = regroup(tree.layout, counts, target / most_bytes)
            if layout is not None:
                return layout
        # the batch is clustered like the version, even if the model has changed
        spec = replace(spec, by=[key.column.sql for key in tree.layout.keys], weights=None)
    return plan_layout(df, replace(spec, files=None, file_size=target), known)


def _whole(df: DataFrame, layout: Layout, rows: int, request: BuildRequest) -> Layout | None:
    """Return the layout of a one-file batch in its table's order; None if that layout has too few levels for it.

    The saved layout of a table that was once small may lack levels.
    """
    page_rows = page_rows_of(df.sparkSession, request.spec.page_rows)
    if layout.curve is None and page_levels(rows, page_rows) > len(layout.levels) + 1:
        return None
    return one_file_layout(layout, rows, batch_levels(rows, page_rows, len(layout.keys)))


def columns_with_stats(
    df: DataFrame, layout: Layout, request: BuildRequest, state: ParquetState | None
) -> Sequence[ResolvedColumn]:
    """Return the columns that files get stats for: those of the version's other files, which all have the same."""
    if state is not None and state.files is not None:
        with contextlib.suppress(Exception):  # the stats are of other columns
            sensitive = case_sensitive(df.sparkSession)
            return [resolve(quote_column(name, df.schema), df.schema, sensitive=sensitive) for name in state.columns]
    return stats_columns(df, layout, request)  # correct for the batch's own files
