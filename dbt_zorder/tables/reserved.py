"""Names of a table's helpers: what somebody else made by such a name is neither dropped nor renamed nor replaced."""

from __future__ import annotations

import contextlib
from hashlib import blake2b

from pyspark.sql import SparkSession

from dbt_zorder.errors import ConfigError
from dbt_zorder.spark.catalog import (
    FORMAT_SUFFIX,
    NEXT_SUFFIX,
    PREVIOUS_SUFFIX,
    ROOT_SUFFIX,
    TableInfo,
    TableName,
    describe,
    location_of,
    properties,
)
from dbt_zorder.spark.catalog_entry import change_entry, is_absent, location_by_entry
from dbt_zorder.spark.files import delete_path, has_client, read_text, write_text
from dbt_zorder.spark.sql import quote_string
from dbt_zorder.stats.schema import STATS_DIRECTORY, STATS_SUFFIX
from dbt_zorder.tables.version import read_marker, version_of

SUFFIXES = (ROOT_SUFFIX, STATS_SUFFIX, NEXT_SUFFIX, PREVIOUS_SUFFIX, FORMAT_SUFFIX)

HELPER = "dbt_zorder.helper_of"
"""Property of an entry that was moved aside for another one: a digest of the table's name."""

_HELPER_FILE = "_zorder_helper"
"""File with the same text in the folder of a table of Delta Lake or Iceberg that is about to take a table's place.

A property would stay, and what is replaced must have the properties of its model.
"""


def check_name(table: TableName) -> None:
    """Find out whether a table has a name that is reserved for the helpers of another one.

    Raises:
        ConfigError: it has.
    """
    for suffix in SUFFIXES:
        if table.identifier.lower().endswith(suffix):
            other = table.identifier[: -len(suffix)]
            msg = (
                f"'{table.identifier}' ends in '{suffix}', a name that is reserved for what belongs to a z-ordered "
                f"table '{other}': give it another name or alias. Reserved endings are {', '.join(SUFFIXES)}."
            )
            raise ConfigError(msg)


def check_free(spark: SparkSession, table: TableName, *suffixes: str) -> None:
    """Find out whether somebody has made a table by a name that a helper of ``table`` is to have.

    Raises:
        ConfigError: somebody has.
    """
    for suffix in suffixes:
        helper = TableName(table.schema, table.identifier + suffix)
        if is_absent(spark, helper.schema, helper.identifier):
            continue
        if suffix == STATS_SUFFIX and _is_of_stats(location_by_entry(spark, helper.schema, helper.identifier) or ""):
            continue  # their many columns take a while
        info = describe(spark, helper)
        if info is not None and not is_helper(spark, table, helper, info):
            msg = (
                f"{helper} is in the way of {table}: the name is reserved for what belongs to that table, and this "
                f"{info.keyword.lower()} was made by something else. Rename it, and run again."
            )
            raise ConfigError(msg)


def is_helper(spark: SparkSession, table: TableName, helper: TableName, info: TableInfo) -> bool:
    """Tell whether an entry by the name of a helper is one of ours, for this table.

    Args:
        spark: the session.
        table: whose helper it would be.
        helper: its name.
        info: of the entry.
    """
    return (
        _leads_to_ours(spark, table, info, is_of_stats=STATS_SUFFIX in helper.identifier)
        or properties(spark, helper).get(HELPER) == _mark(table)
        or (bool(info.location) and is_marked(spark, table, info.location))
    )


def is_marked(spark: SparkSession, table: TableName, folder: str) -> bool:
    """Tell whether ``mark_folder`` has marked a folder for a table."""
    try:
        return has_client(spark) and read_text(spark, f"{folder.rstrip('/')}/{_HELPER_FILE}") == _mark(table)
    except Exception:  # there is no such file
        return False


def mark_folder(spark: SparkSession, table: TableName, helper: TableName) -> None:
    """Mark the folder of a new table that is to take a table's place; not over Spark Connect."""
    if has_client(spark):
        write_text(spark, f"{location_of(spark, helper).rstrip('/')}/{_HELPER_FILE}", _mark(table))


def unmark_folder(spark: SparkSession, table: TableName) -> None:
    """Take the mark away from the folder of a table that has its own name now."""
    if has_client(spark):
        with contextlib.suppress(Exception):  # the table is there, and the file does no harm
            delete_path(spark, f"{location_of(spark, table).rstrip('/')}/{_HELPER_FILE}")


def drop_helper(spark: SparkSession, table: TableName, helper: TableName) -> None:
    """Drop an entry by the name of a helper, if it is one of ours."""
    if is_absent(spark, helper.schema, helper.identifier):
        return
    info = describe(spark, helper)
    if info is not None and is_helper(spark, table, helper, info):
        spark.sql(f"DROP {info.keyword} IF EXISTS {helper.sql}")


def mark_helper(spark: SparkSession, table: TableName) -> None:
    """Mark a table or view that is about to be moved aside, under a helper's name, unless its folder tells it."""
    info = describe(spark, table)
    if info is not None and not _leads_to_ours(spark, table, info, is_of_stats=STATS_SUFFIX in table.identifier):
        pair = f"({quote_string(HELPER)} = {quote_string(_mark(table))})"
        statement = f"ALTER {info.keyword} {table.sql} SET TBLPROPERTIES {pair}"
        change_entry(spark, table.schema, table.identifier, statement)


def unmark_helper(spark: SparkSession, table: TableName) -> None:
    """Take the mark away from a table or view that has its own name again."""
    info = describe(spark, table)
    if info is not None and HELPER in properties(spark, table):
        statement = f"ALTER {info.keyword} {table.sql} UNSET TBLPROPERTIES IF EXISTS ({quote_string(HELPER)})"
        change_entry(spark, table.schema, table.identifier, statement)


def _leads_to_ours(spark: SparkSession, table: TableName, info: TableInfo, *, is_of_stats: bool) -> bool:
    """Tell whether an entry is over a version of a table, or over stats where it is to be."""
    if info.kind != "EXTERNAL":
        return False
    location = info.location.rstrip("/")
    if is_of_stats:
        return _is_of_stats(location)
    if not version_of(location):
        return False
    marker = read_marker(spark, location, dying=True)
    if marker is not None:
        return marker.is_of(table)
    return location.rsplit("/", 2)[-2].lower() == f"{table.identifier}{ROOT_SUFFIX}".lower()


def _is_of_stats(location: str) -> bool:
    return location.rstrip("/").endswith(f"/{STATS_DIRECTORY}")


def _mark(table: TableName) -> str:
    """Return a table's name as a digest: Spark hides a value in which it sees an address or a secret."""
    return blake2b(str(table).lower().encode(), digest_size=8).hexdigest()
