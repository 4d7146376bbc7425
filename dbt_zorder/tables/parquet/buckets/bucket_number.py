"""Choose the number of buckets of a version: the model's, that of the table, or one that fits the table's size."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from dbt_zorder.engine.keep_result import staged
from dbt_zorder.engine.row_bytes import with_previous_row_bytes
from dbt_zorder.layout.hash_index import fitting_buckets, splits_into
from dbt_zorder.layout.plan import count_files
from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.progress import Clock
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableInfo
from dbt_zorder.spark.columns import case_sensitive
from dbt_zorder.stats.store import load_sizes
from dbt_zorder.tables.version import version_of

_LOG = logging.getLogger("dbt_zorder")


@contextlib.contextmanager
def numbered(
    df: DataFrame, request: BuildRequest, base: TableInfo | None, clock: Clock
) -> Iterator[tuple[DataFrame, BuildRequest]]:
    """Choose the number of buckets for a build, if its model leaves that to the size of the table.

    The query is counted for it. One that is expensive to run twice is kept for the block.

    Args:
        df: the query.
        request: the model's settings.
        base: catalog description of the table before; None if it did not exist.
        clock: measures the phase query.

    Yields:
        The query or its kept result, and the settings with a number.
    """
    index, spec = request.hash_index, request.spec
    if index is None or index.buckets is not None:
        yield df, request
        return
    with staged(df) as query:
        with clock.phase("query"):
            files = count_files(query.rows, with_version_row_bytes(spec, df, base))
        now = _buckets_now(base, request, df.schema, case_sensitive(df.sparkSession))
        buckets = fitting_buckets(files, len(spec.by), now)
        _LOG.debug("%s gets %d buckets; it would be %d files without them", request.table, buckets, sum(files))
        yield query.rows, replace(request, hash_index=replace(index, buckets=buckets))


def with_version_row_bytes(spec: LayoutSpec, df: DataFrame, base: TableInfo | None) -> LayoutSpec:
    """Set the bytes of a row from the version that a build replaces, if it is one and has the same columns."""
    if base is None or not version_of(base.location):
        return spec
    return with_previous_row_bytes(spec, df, base, lambda: load_sizes(df.sparkSession, base.location))


def with_table_buckets(info: TableInfo, request: BuildRequest, schema: StructType, *, sensitive: bool) -> BuildRequest:
    """Return the settings by which a batch goes into a table: with the table's own number of buckets.

    That is the number of a table with the same key, if the model leaves the number to the table, or asks for a multiple
    into which its files can be split after the batch. Otherwise, return the settings as they are.

    Args:
        info: catalog description of the table.
        request: the model's settings.
        schema: columns of the table.
        sensitive: whether the session distinguishes column names by case.
    """
    index = request.hash_index
    now = _buckets_now(info, request, schema, sensitive)
    if index is None or not now or not (index.buckets is None or splits_into(now, index.buckets)):
        return request
    return replace(request, hash_index=replace(index, buckets=now))


def _buckets_now(info: TableInfo | None, request: BuildRequest, schema: StructType, sensitive: bool) -> int:
    """Return the number of buckets of a table with the key of the request; 0 if it has none by that key."""
    if info is None or request.buckets_in(schema, sensitive=sensitive)[0] != list(info.bucket_columns):
        return 0
    return info.bucket_count


def is_split_wanted(asked: BuildRequest, used: BuildRequest) -> bool:
    """Return whether a table whose batch went in by ``used`` is to get the more buckets that the model asks for."""
    one, two = asked.hash_index, used.hash_index
    return one is not None and two is not None and one.buckets is not None and one.buckets != two.buckets
