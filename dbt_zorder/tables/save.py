"""Save any DataFrame as a z-ordered table, for users of plain PySpark; equivalent to a model with ``zorder_by``."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from dbt_zorder import option_parsers as values
from dbt_zorder.errors import BuildError, ConfigError, ZorderError
from dbt_zorder.layout.curves import CURVES, ENCODINGS
from dbt_zorder.layout.hash_index import HashIndex
from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.request import IN_MEMORY, BuildRequest
from dbt_zorder.spark.catalog import TableInfo, TableName, describe
from dbt_zorder.spark.char_types import as_text
from dbt_zorder.spark.columns import case_sensitive, split_name
from dbt_zorder.spark.conf import settings
from dbt_zorder.spark.plain_names import check_identifier
from dbt_zorder.spark.sql import quote_name
from dbt_zorder.tables.parquet.partition_discovery import BY_CATALOG, folders_tell
from dbt_zorder.tables.registry import LAKEHOUSE, PARQUET, for_format, open_table
from dbt_zorder.tables.report import Outcome
from dbt_zorder.tables.reserved import check_name
from dbt_zorder.tables.two_step_swap import restore_if_interrupted

MODES = ("error", "errorifexists", "overwrite")
"""Treatments of an existing table; names of ``DataFrameWriter.mode``."""

_CATALOG = "spark_catalog"
_TIMES, _NO_BOUNDS, _BOUNDS = "spark.sql.parquet.outputTimestampType", "INT96", "TIMESTAMP_MICROS"

_SETTING = threading.Lock()


def save_table(
    df: DataFrame,
    table: str,
    by: str | Sequence[str],
    mode: str = "error",
    *,
    files: int | None = None,
    file_size: str | int = "auto",
    partition_by: str | Sequence[str] | None = None,
    curve: str = "zorder",
    encoding: str = "rank",
    weights: Sequence[float] | Mapping[str, float] | None = None,
    bloom: str | Sequence[str] | None = None,
    clustered_by: str | Sequence[str] | None = None,
    buckets: int | str | None = None,
    stats_columns: str | Sequence[str] | None = None,
    file_format: str | None = None,
    options: Mapping[str, Any] | None = None,
    properties: Mapping[str, Any] | None = None,
    comment: str = "",
    location_root: str | None = None,
    keep_versions: int = 2,
    grace_hours: float = 24.0,
    in_memory: str | int | None = None,
    seed: int = 0,
) -> Outcome:
    """Save ``df`` as a z-ordered table that ``scan``, ``query`` and ``zorder_scan`` prune, and return the outcome.

    The rows are laid out, checked and swapped in as those of a dbt model. Readers see the old table until the new one
    is complete, and a failure leaves the old one in place. Where all of Spark runs on one machine, this process sorts
    and writes the rows without a shuffle.

    Examples:
        >>> orders = spark.range(100).selectExpr("id AS order_id", "id % 7 AS customer_id")
        >>> saved = save_table(orders, "shop.orders", ["order_id", "customer_id"], mode="overwrite", files=4)
        >>> saved.files, saved.rows
        (4, 100)

    Args:
        df: any batch DataFrame. It may read the table that it replaces; create it just before this call.
        table: ``orders``, in the current schema, or ``sales.orders``; each part may be quoted with backticks.
        by: 1 to 8 columns; struct leaves with dots.
        mode: ``error`` fails if the table exists; ``overwrite`` replaces it by one catalog call, or one commit of its
            format.
        files: exact number of files (in each partition), instead of a size.
        file_size: ``auto`` (128 MB, more above 100 GB), bytes, or a text like ``64MB``.
        partition_by: partition columns of the table.
        curve: ``zorder``, ``hilbert`` or ``linear``.
        encoding: ``rank`` among sampled boundaries, or the type's own ``bits``.
        weights: importance of filters on each column: a positive number per column, or numbers by name; equal by
            default.
        bloom: columns with a Parquet bloom filter.
        clustered_by: key of a hash index, see docs/guides/hash-index.md; needs ``buckets``.
        buckets: number of buckets of the hash index; ``auto`` chooses it by the number of files.
        stats_columns: further columns to keep stats of.
        file_format: ``parquet``, ``delta`` or ``iceberg``; None keeps the table's format, or means ``parquet`` if it
            has none of these.
        options: options of Spark's Parquet writer, such as ``compression``.
        properties: properties of the table.
        comment: comment of the table; columns keep the comments of ``df``.
        location_root: folder of a Parquet table's versions; by default the schema's own folder.
        keep_versions: number of old versions of a Parquet table to keep.
        grace_hours: minimum hours that each replaced version of a Parquet table is kept.
        in_memory: maximum size of rows that are fetched into this process at once: bytes, or a text like ``64MB``. None
            means 256 MB; ``never`` leaves the layout to Spark.
        seed: seed of the sample: the same rows in the same order give the same files.

    Raises:
        ColumnError, ConfigError: an argument is invalid, or the table exists and ``mode`` forbids that; nothing was
            read or written.
        BuildError: rows or files were lost, another run changed the table meanwhile, or the catalog refused; the table
            is unchanged.
        LostRowsError: the write replaced another commit to a Delta or Iceberg table; the message says where its rows
            are.
    """
    if not hasattr(df, "sparkSession") or df.isStreaming:
        msg = f"df is a {'stream' if hasattr(df, 'sparkSession') else type(df).__name__}, not a batch DataFrame."
        raise ConfigError(msg)
    spark, df = df.sparkSession, as_text(df)
    mode = values.read("mode", mode, values.one_of(*MODES))
    name = name_of(spark, table)
    with _naming(name):
        check_name(name)
        restore_if_interrupted(spark, name)
        there = open_table(spark, name)
        info = None if there is None else there.info
        _check_there(spark, name, info, mode)
        names = values.read("by", by, values.column_names)
        in_order = values.weights_in_order(names, sensitive=case_sensitive(spark))
        written = values.optional("options", options, values.options, {})
        request = BuildRequest(
            table=name,
            spec=LayoutSpec(
                by=names,
                files=values.optional("files", files, values.positive_integer, None),
                file_size=values.read("file_size", file_size, values.file_size),
                partition_by=values.optional("partition_by", partition_by, values.column_names, ()),
                weights=values.optional("weights", weights, in_order, None),
                seed=seed,
                curve=values.read("curve", curve, values.one_of(*CURVES)),
                encoding=values.read("encoding", encoding, values.one_of(*ENCODINGS)),
                page_rows=values.page_rows(written),
                compression=values.compression(written),
            ),
            stats_columns=values.optional("stats_columns", stats_columns, values.column_names, ()),
            bloom=values.optional("bloom", bloom, values.column_names, ()),
            options=written,
            comment=values.read("comment", comment, values.text),
            column_comments=_comments(df),
            properties=values.optional("properties", properties, values.properties, {}),
            location_root=values.optional("location_root", location_root, values.folder, None),
            keep_versions=values.read("keep_versions", keep_versions, values.whole_number),
            grace_hours=values.read("grace_hours", grace_hours, values.hours),
            hash_index=_hash_index(clustered_by, buckets),
            file_format=_format(file_format, info),
            in_memory=values.optional("in_memory", in_memory, values.memory, IN_MEMORY),
        )
        is_same = info is not None and info.provider == request.file_format
        replaced = there if there is not None and is_same else for_format(spark, request, info)
        replaced.check(df, request)
        with _set_for(spark, request):
            guard = partial(check_still_absent, spark, name) if there is None else there.guard(df)
            return Outcome.of_build(replaced.build(df, request, guard))


def check_still_absent(spark: SparkSession, table: TableName) -> None:
    """Check once more, just before the commit, that a table that did not exist still does not.

    Raises:
        BuildError: another run has created it.
    """
    restore_if_interrupted(spark, table)
    if describe(spark, table) is not None:
        msg = "Another run has made the table meanwhile, so that this one was given up and changed nothing."
        raise BuildError(msg)


@contextlib.contextmanager
def _set_for(spark: SparkSession, request: BuildRequest) -> Iterator[None]:
    """Override, for the block, Spark defaults that would lose the bounds of timestamps or hide new partitions.

    Threads that need the same override wait, because each would restore the value that another one has set.
    """
    wanted = {}
    if str(spark.conf.get(_TIMES)).upper() == _NO_BOUNDS:
        wanted[_TIMES] = _BOUNDS
    if request.spec.partition_by and not folders_tell(spark):
        wanted[BY_CATALOG] = "false"
    if not wanted:
        yield
        return
    with _SETTING, settings(spark, wanted):
        yield


def _check_there(spark: SparkSession, table: TableName, info: TableInfo | None, mode: str) -> None:
    """Check that the existing relation may be replaced, or that a table of this name can be created.

    Raises:
        ConfigError: it is a view; it is a table and ``mode`` is not ``overwrite``; or the schema or identifier is
            invalid.
    """
    if info is None:
        if not spark.catalog.databaseExists(quote_name(table.schema)):
            msg = f"There is no schema {table.schema}; make it by CREATE SCHEMA {quote_name(table.schema)}."
            raise ConfigError(msg)
        check_identifier(table.identifier)
    elif info.is_view:
        msg = "It is a view. Drop it, or take another name."
        raise ConfigError(msg)
    elif mode != "overwrite":
        msg = f"The table exists, and mode is '{mode}'. 'overwrite' replaces it."
        raise ConfigError(msg)


def _hash_index(clustered_by: object, buckets: object) -> HashIndex | None:
    key = values.optional("clustered_by", clustered_by, values.column_names, ())
    return values.hash_index("", key, values.optional("buckets", buckets, values.buckets, None))


def _comments(df: DataFrame) -> dict[str, str]:
    """Return the comments of columns, as a table of the session stores them."""
    comments = {quote_name(column.name): (column.metadata or {}).get("comment") for column in df.schema.fields}
    return {name: str(text) for name, text in comments.items() if text}


def name_of(spark: SparkSession, table: str) -> TableName:
    """Parse the name of a table into schema and identifier.

    Raises:
        ConfigError: the name has another form, or another catalog than the default one.
    """
    parts = split_name(table.strip()) if isinstance(table, str) else [""]
    if len(parts) > 3 or not all(parts):
        msg = f"A table is named like 'orders' or 'sales.orders'; given was {table!r}."
        raise ConfigError(msg)
    current = spark.catalog.currentCatalog()
    catalog = parts[0] if len(parts) == 3 else current
    if not catalog.lower() == current.lower() == _CATALOG:
        msg = (
            f"{table}: its catalog is {catalog}, and the session's is {current}. Tables can be saved in {_CATALOG} "
            "alone, while it is the current one."
        )
        raise ConfigError(msg)
    return TableName(*parts[-2:]) if len(parts) > 1 else TableName(spark.catalog.currentDatabase(), parts[0])


def _format(given: str | None, info: TableInfo | None) -> str:
    formats = (PARQUET, *LAKEHOUSE)
    if given is None:
        return info.provider if info is not None and info.provider in formats else PARQUET
    return values.read("file_format", given, values.one_of(*formats))


@contextlib.contextmanager
def _naming(table: TableName) -> Iterator[None]:
    """Add the name of the table to errors raised in the block."""
    try:
        yield
    except ZorderError as exc:
        if str(table) in str(exc):
            raise
        msg = f"{table}: {exc}"
        raise type(exc)(msg) from exc
