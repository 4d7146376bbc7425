"""Point a table at a version by one catalog call.

After the call, new readers see all of the version; before it, none of it.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructField, StructType

from dbt_zorder.errors import BuildError, ZorderError
from dbt_zorder.request import BuildRequest, partition_columns
from dbt_zorder.spark.catalog import NEXT_SUFFIX, TableInfo, TableName, column_facts, describe, location_of
from dbt_zorder.spark.catalog_entry import entry_session, invalidate_entry, move_entry
from dbt_zorder.spark.columns import case_sensitive
from dbt_zorder.spark.ddl import type_ddl
from dbt_zorder.spark.messages import message_of
from dbt_zorder.spark.sql import quote_name, quote_string
from dbt_zorder.spark.type_json import columns_from_json
from dbt_zorder.tables.metastore import kept_entry, put_back, replace_entry
from dbt_zorder.tables.opened import check_opens
from dbt_zorder.tables.parquet.partition_discovery import let_folders_tell
from dbt_zorder.tables.parquet.properties import are_set, with_record
from dbt_zorder.tables.reserved import check_free, drop_helper
from dbt_zorder.tables.two_step_swap import following_of, swap_in
from dbt_zorder.tables.version import Marker, is_version

_LOG = logging.getLogger("dbt_zorder")


@dataclass(frozen=True)
class Definition:
    """The catalog's definition of a table, without its location.

    Attributes:
        schema: columns in order, partition columns last; a column's comment is in its metadata.
        partition_by: names of the partition columns.
        comment: comment of the table.
        properties: properties of the table.
        bucket_by: names of the columns of the hash index.
        buckets: its number of buckets; 0 without one.
    """

    schema: StructType
    partition_by: Sequence[str] = ()
    comment: str = ""
    properties: Mapping[str, str] = field(default_factory=dict)
    bucket_by: Sequence[str] = ()
    buckets: int = 0


def definition_for(df: DataFrame, request: BuildRequest) -> Definition:
    """Return the definition of a table; partition columns go last, where Spark puts them when it reads the folder."""
    partitions = [column.name for column in partition_columns(df.sparkSession, df.schema, request)]
    fields = []
    for name in [name for name in df.columns if name not in partitions] + partitions:
        comment = request.comment_of(name)
        fields.append(StructField(name, df.schema[name].dataType, True, {"comment": comment} if comment else {}))
    buckets = request.buckets_in(df.schema, sensitive=case_sensitive(df.sparkSession))
    return Definition(StructType(fields), partitions, request.comment, request.properties, *buckets)


def definition_of(marker: Marker, comment: str, own: Mapping[str, str]) -> Definition:
    """Return the table's definition when a version was built, with the current comment and properties.

    Raises:
        ZorderError: the version's marker has no columns, or has types that Spark lacks.
    """
    if not marker.schema:
        msg = f"{marker.table}: the version {marker.version} does not say what columns it has, so it cannot be served."
        raise ZorderError(msg)
    columns = columns_from_json(marker.schema, f"the marker of {marker.table}'s version {marker.version}")
    return Definition(columns, marker.partition_by, comment, own, marker.bucket_by, marker.buckets)


def publish(
    spark: SparkSession, table: TableName, definition: Definition, location: str, now: TableInfo | None = None
) -> None:
    """Make ``table`` an external Parquet table with this definition at ``location``, whatever it was before.

    If only the location changes, the entry keeps its definition: one catalog call, or ``ALTER TABLE ... SET LOCATION``,
    changes its location. Otherwise the whole entry is replaced. Files at the former location stay. Then the table is
    opened by its name. If that does not find its rows, the previous entry is restored.

    Args:
        spark: the session.
        table: name of the table, which need not exist.
        definition: new definition of the table.
        location: folder of its rows.
        now: current description of the table, if just read.

    Raises:
        BuildError: the catalog refused, or the accepted entry cannot be read; the message says whether the table is
            unchanged.
        ConfigError: the table is partitioned, and this session would look for its partitions in the catalog.
    """
    if definition.partition_by:
        let_folders_tell(spark)
    old = now or describe(spark, table)
    entry = kept_entry(spark, table) if old is not None else None
    location_only = False
    try:
        session = entry_session(spark)
        if old is None:
            session.sql(_create(table, definition, location))
        elif not (location_only := _is_same(spark, table, old, definition)):
            _replace(session, table, definition, location)
        elif not move_entry(session, table.schema, table.identifier, location):
            session.sql(_move(table, location))
        invalidate_entry(spark, table.schema, table.identifier)  # also in the catalog of the table's former format
    except Exception as exc:
        # the call may have succeeded and only its reply was lost: the catalog's current state decides
        if not leads_to(spark, table, location):
            left = describe(spark, table)
            state = "does not exist now" if left is None else f"still stands at {left.location or 'its view'}"
            msg = f"The catalog did not accept the new version of {table}, which {state}: {message_of(exc)}"
            raise BuildError(msg) from exc
        with contextlib.suppress(Exception):  # Spark cannot read the location, which the next check finds as well
            invalidate_entry(spark, table.schema, table.identifier)
    try:
        check_opens(spark, table, location, old.location if old else "")
    except BuildError as exc:
        state = _undo(spark, table, old, entry, location_only=location_only)
        msg = f"The catalog accepted the new version of {table}, but {exc}. {state}"
        raise BuildError(msg) from exc


def _undo(spark: SparkSession, table: TableName, old: TableInfo | None, entry: Any, *, location_only: bool) -> str:
    """Restore the previous entry of a table; return a sentence about the table's state now."""
    if old is None:
        spark.sql(f"DROP TABLE IF EXISTS {table.sql}")
        return "There was no such table before, and there is none now."
    try:
        if entry is not None:
            put_back(spark, table, entry)
        elif location_only:
            entry_session(spark).sql(_move(table, old.location))
        invalidate_entry(spark, table.schema, table.identifier)
    except Exception as exc:
        _LOG.warning("the entry of %s could not be put back: %s", table, message_of(exc))
    before = f"at {old.location}" if old.location else "a view"
    if describe(spark, table) == old:
        return f"The table is as it was, {before}."
    return f"Its entry could not be put back: the table was {before} before."


def leads_to(spark: SparkSession, table: TableName, location: str) -> bool:
    """Return whether a table is served from a location."""
    return _tail(location_of(spark, table)) == _tail(location)


def _tail(location: str) -> list[str]:
    """Return the last two folders of a location; no two versions share them, and all stats folders have one name."""
    return location.rstrip("/").split("/")[-2:]


def _move(table: TableName, location: str) -> str:
    return f"ALTER TABLE {table.sql} SET LOCATION {quote_string(location)}"


def _create(table: TableName, definition: Definition, location: str) -> str:
    columns = []
    for column in definition.schema.fields:
        text = f"{quote_name(column.name)} {type_ddl(column.dataType)}"
        comment = (column.metadata or {}).get("comment")
        columns.append(f"{text} COMMENT {quote_string(comment)}" if comment else text)
    clauses = [f"CREATE TABLE {table.sql} ({', '.join(columns)}) USING parquet"]
    if definition.partition_by:
        clauses.append(f"PARTITIONED BY ({', '.join(quote_name(name) for name in definition.partition_by)})")
    if definition.buckets:
        key = ", ".join(map(quote_name, definition.bucket_by))
        # never SORTED BY: rows of a bucket are z-ordered, and old settings let Spark believe the clause
        clauses.append(f"CLUSTERED BY ({key}) INTO {definition.buckets} BUCKETS")
    clauses.append(f"LOCATION {quote_string(location)}")
    if definition.comment:
        clauses.append(f"COMMENT {quote_string(definition.comment)}")
    if definition.properties:
        listed = with_record(definition.properties)
        pairs = (f"{quote_string(k)} = {quote_string(v)}" for k, v in listed.items())
        clauses.append(f"TBLPROPERTIES ({', '.join(pairs)})")
    return " ".join(clauses)


def _is_same(spark: SparkSession, table: TableName, old: TableInfo, new: Definition) -> bool:
    """Return whether a new location alone turns an entry into ``new``; only entries made by dbt-zorder qualify.

    Other entries have settings that are not compared, such as the provider of partitions.
    """
    if old.kind != "EXTERNAL" or old.provider != "parquet" or not any(map(is_version, _tail(old.location))):
        return False
    if old.partition_provider or (list(old.bucket_columns), old.bucket_count) != (list(new.bucket_by), new.buckets):
        return False
    if old.comment != new.comment or list(old.partition_columns) != list(new.partition_by):
        return False
    columns = list(old.columns)
    if any(" more fields" in kind for _, kind, _ in columns):
        # DESCRIBE truncates wide structs (spark.sql.debug.maxToStringFields)
        columns = column_facts(spark.table(table.sql).schema)
    if columns != column_facts(new.schema):
        return False
    return not (old.has_properties or new.properties) or are_set(spark, table, new.properties)


def _replace(spark: SparkSession, table: TableName, definition: Definition, location: str) -> None:
    """Replace a table or view of another kind, schema or comment.

    The new entry is created under a name of its own. It then replaces the old one by one call of the Hive client.
    Without such a client (Spark Connect, another catalog) both entries are renamed, one right after the other. The
    table is then missing for a few milliseconds.
    """
    following = following_of(table)
    check_free(spark, table, NEXT_SUFFIX)
    drop_helper(spark, table, following)
    spark.sql(_create(following, definition, location))
    # the Hive client dropped an earlier entry of that name, which the session's cache may still have
    invalidate_entry(spark, following.schema, following.identifier)
    try:
        check_opens(spark, following, location)  # while the table is unchanged
        # the call may have succeeded although its reply was lost
        if not (replace_entry(spark, table, following) or leads_to(spark, table, location)):
            _LOG.debug("%s is replaced by two catalog calls, because this catalog has no single one for it", table)
            swap_in(spark, table)
    except BaseException:
        if describe(spark, table) is not None:  # otherwise it is the catalog's only entry for the new version
            spark.sql(f"DROP TABLE IF EXISTS {following.sql}")
        raise
    spark.sql(f"DROP TABLE IF EXISTS {following.sql}")
