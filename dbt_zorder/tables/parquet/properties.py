"""Record which properties of a table its model set.

A property that the model no longer sets must be removed, and no other property may be.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from pyspark.sql import SparkSession

from dbt_zorder.errors import ZorderError
from dbt_zorder.spark.catalog import TableName, properties
from dbt_zorder.spark.conf import REDACTED
from dbt_zorder.spark.jvm import has_jvm

_RECORD = "dbt_zorder.tblproperties"
"""Property that lists those of the model: names in hex, each with a digest of name and value.

Spark redacts the value of every property whose name or value looks like an address or a secret. It would redact this
one for the names that it contains.
"""

_INTERNAL = ("spark.sql.", "dbt_zorder.", "transient_lastDdlTime", "EXTERNAL", "numFiles", "numRows", "totalSize",
             "rawDataSize", "COLUMN_STATS_ACCURATE", "last_modified_", "bucketing_version")  # fmt: skip
"""Beginnings of the names of properties that only Spark, Hive or this package sets."""

_HIDDEN = f"*********{REDACTED}"


def with_record(own: Mapping[str, str]) -> dict[str, str]:
    """Return the properties that a model sets, with the property that records them."""
    record = {name.encode().hex(): _digest(name, own[name]) for name in sorted(own)}
    return {**own, _RECORD: json.dumps(record)} if own else {}


def own_properties(spark: SparkSession, table: TableName) -> dict[str, str]:
    """Return the properties of a table that its model set.

    Raises:
        ZorderError: Spark redacts one of them, and this session has no other access to its catalog.
    """
    has = _revealed(spark, table)
    recorded = _recorded(has)
    own = {_RECORD: _HIDDEN} if recorded is None else {name: has[name] for name in recorded}
    return _visible(table, own)


def all_properties(spark: SparkSession, table: TableName) -> dict[str, str]:
    """Return the properties of another writer's table, without those that Spark or Hive sets itself.

    Raises:
        ZorderError: ``own_properties`` would raise it.
    """
    has = _revealed(spark, table)
    return _visible(table, {name: value for name, value in has.items() if not name.startswith(_INTERNAL)})


def _visible(table: TableName, own: dict[str, str]) -> dict[str, str]:
    hidden = [name for name, value in own.items() if value == _HIDDEN]
    if hidden:
        msg = (
            f"{table} has the property '{hidden[0]}', whose value Spark hides from this session "
            "(spark.sql.redaction.options.regex, spark.redaction.regex), so that it would be lost: name the model "
            "instead, or run this in-process."
        )
        raise ZorderError(msg)
    return own


def are_set(spark: SparkSession, table: TableName, wanted: Mapping[str, str]) -> bool:
    """Return whether a table has all properties that a model sets, and none that it no longer sets."""
    has = _revealed(spark, table)
    recorded = _recorded(has)
    if recorded is None or set(recorded) - set(wanted):
        return False
    return all(
        has.get(name) == value or (has.get(name) == _HIDDEN and recorded.get(name) == _digest(name, value))
        for name, value in wanted.items()
    )


def _digest(name: str, value: str) -> str:
    return blake2b(json.dumps([name, value]).encode(), digest_size=12).hexdigest()


def _recorded(has: Mapping[str, str]) -> dict[str, str] | None:
    """Return the recorded properties that a table has, each with its digest; None if the record is unreadable.

    An earlier form of the record is a plain list of names without digests.
    """
    try:
        record = json.loads(has.get(_RECORD, "{}"))
    except ValueError:
        return None
    if isinstance(record, list):
        found = dict.fromkeys(record, "")
    else:
        found = {bytes.fromhex(name).decode(): digest for name, digest in record.items()}
    return {name: digest for name, digest in found.items() if name in has}


def _revealed(spark: SparkSession, table: TableName) -> dict[str, str]:
    """Return the properties of a table, with redacted values read directly from the catalog if possible."""
    has = dict(properties(spark, table))
    hidden = [name for name, value in has.items() if value == _HIDDEN]
    if hidden and has_jvm(spark):
        try:
            catalog: Any = spark._jsparkSession.sharedState().externalCatalog()
            entry = catalog.getTable(table.schema, table.identifier).properties()
            found = {name: entry.get(name) for name in hidden}
        except Exception:  # a table of another catalog
            return has
        has.update({name: str(value.get()) for name, value in found.items() if value.isDefined()})
    return has
