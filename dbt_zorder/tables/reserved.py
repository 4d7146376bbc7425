"""Reserve the names of a table's helpers.

A table that something else made under such a name is never dropped, renamed or replaced.
"""

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
"""Property of an entry that was renamed to make room for another one: a digest of the table's name."""

_HELPER_FILE = "_zorder_helper"
"""Names a file with the same digest in a Delta Lake or Iceberg table's folder until the table is swapped in.

A property would remain, and the new table must have exactly the properties of its model.
"""


def check_name(table: TableName) -> None:
    """Check that the name of a table is not reserved for the helpers of another one.

    Raises:
        ConfigError: it is reserved.
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
    """Check that nothing else has a name that a helper of ``table`` needs.

    Raises:
        ConfigError: another relation has the name.
    """
    for suffix in suffixes:
        helper = TableName(table.schema, table.identifier + suffix)
        if is_absent(spark, helper.schema, helper.identifier):
            continue
        if suffix == STATS_SUFFIX and _is_of_stats(location_by_entry(spark, helper.schema, helper.identifier) or ""):
            continue  # describing their many columns is slow
        info = describe(spark, helper)
        if info is not None and not is_helper(spark, table, helper, info):
            msg = (
                f"{helper} is in the way of {table}: the name is reserved for what belongs to that table, and this "
                f"{info.keyword.lower()} was made by something else. Rename it, and run again."
            )
            raise ConfigError(msg)


def is_helper(spark: SparkSession, table: TableName, helper: TableName, info: TableInfo) -> bool:
    """Return whether the entry under a helper's name was made by dbt-zorder for this table.

    Args:
        spark: the session.
        table: the table that the helper would belong to.
        helper: name of the helper.
        info: catalog description of the entry.
    """
    return (
        _leads_to_ours(spark, table, info, is_of_stats=STATS_SUFFIX in helper.identifier)
        or properties(spark, helper).get(HELPER) == _mark(table)
        or (bool(info.location) and is_marked(spark, table, info.location))
    )


def is_marked(spark: SparkSession, table: TableName, folder: str) -> bool:
    """Return whether ``mark_folder`` has marked a folder for a table."""
    try:
        return has_client(spark) and read_text(spark, f"{folder.rstrip('/')}/{_HELPER_FILE}") == _mark(table)
    except Exception:  # the file does not exist
        return False


def mark_folder(spark: SparkSession, table: TableName, helper: TableName) -> None:
    """Mark the folder of a new table that will replace a table; do nothing over Spark Connect."""
    if has_client(spark):
        write_text(spark, f"{location_of(spark, helper).rstrip('/')}/{_HELPER_FILE}", _mark(table))


def unmark_folder(spark: SparkSession, table: TableName) -> None:
    """Remove the mark from the folder of a table that has its own name now."""
    if has_client(spark):
        with contextlib.suppress(Exception):  # the table exists, and the file does no harm
            delete_path(spark, f"{location_of(spark, table).rstrip('/')}/{_HELPER_FILE}")


def drop_helper(spark: SparkSession, table: TableName, helper: TableName) -> None:
    """Drop the entry under a helper's name, if dbt-zorder made it for this table."""
    if is_absent(spark, helper.schema, helper.identifier):
        return
    info = describe(spark, helper)
    if info is not None and is_helper(spark, table, helper, info):
        spark.sql(f"DROP {info.keyword} IF EXISTS {helper.sql}")


def mark_helper(spark: SparkSession, table: TableName) -> None:
    """Mark a table or view before it is renamed to a helper's name, unless its folder identifies it."""
    info = describe(spark, table)
    if info is not None and not _leads_to_ours(spark, table, info, is_of_stats=STATS_SUFFIX in table.identifier):
        pair = f"({quote_string(HELPER)} = {quote_string(_mark(table))})"
        statement = f"ALTER {info.keyword} {table.sql} SET TBLPROPERTIES {pair}"
        change_entry(spark, table.schema, table.identifier, statement)


def unmark_helper(spark: SparkSession, table: TableName) -> None:
    """Remove the mark from a table or view that has its own name again."""
    info = describe(spark, table)
    if info is not None and HELPER in properties(spark, table):
        statement = f"ALTER {info.keyword} {table.sql} UNSET TBLPROPERTIES IF EXISTS ({quote_string(HELPER)})"
        change_entry(spark, table.schema, table.identifier, statement)


def _leads_to_ours(spark: SparkSession, table: TableName, info: TableInfo, *, is_of_stats: bool) -> bool:
    """Return whether an entry leads to a version of a table, or to stats if ``is_of_stats``."""
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
    """Return a digest of a table's name: Spark redacts values that look like addresses or secrets."""
    return blake2b(str(table).lower().encode(), digest_size=8).hexdigest()
