"""Read Spark's JSON of columns with a list of allowed types: others may have written the file that contains it.

PySpark instantiates the class that a ``udt`` names. It imports a module, calls a class, and before 3.5.9 loads a
pickle. So a schema is checked first, and a type that is not on the list is an error.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Mapping
from typing import Any

from pyspark.sql.types import StructField, StructType

from dbt_zorder.errors import ZorderError

_ATOMIC = re.compile(
    r"""
    void | null | string | binary | boolean | date | variant
    | byte | short | integer | long | float | double | decimal
    | decimal\(\s*\d{1,3}\s*,\s*-?\d{1,3}\s*\)
    | (?:char|varchar)\(\s*\d{1,10}\s*\)
    | string\ collate\ \w{1,100}
    | (?:timestamp|timestamp_ntz|timestamp_ltz|time)(?:\(\s*\d{1,2}\s*\))?
    | interval
    | interval\ (?:day|hour|minute|second)(?:\ to\ (?:hour|minute|second))?
    | interval\ (?:year|month)(?:\ to\ month)?
    | (?:geometry|geography)(?:\(\s*[\w:-]{1,100}\s*(?:,\s*\w{1,100}\s*)?\))?
    """,
    re.VERBOSE | re.ASCII,
)
"""Types of single values in Spark 3.5 to 4.x; the installed version may support fewer."""

_NESTED: Mapping[str, tuple[str, ...]] = {
    "struct": (),
    "array": ("elementType",),
    "map": ("keyType", "valueType"),
}
"""Keys of the inner types by the name of a nested type; a struct's inner types are in its fields."""

_WHOLE = 200
"""Maximum number of characters of a type in a message."""


def columns_from_json(found: str | bytes | Mapping[str, Any], source: str) -> StructType:
    """Return the columns in Spark's JSON, if all their types are Spark's own.

    Args:
        found: JSON text, or the object parsed from it.
        source: file or table that contains it, for messages.

    Raises:
        ZorderError: it is not JSON of columns, or has a type that is not on the list.
    """
    try:
        read = _struct(found)
        _check(read)
        return StructType.fromJson(read)
    except Exception as exc:  # RecursionError for deep nesting, or a type that an older PySpark lacks
        msg = f"The columns in {source} cannot be read: {exc}. They are not used."
        raise ZorderError(msg) from exc


def plain_columns(found: str | bytes, source: str) -> StructType:
    """Return the columns in Spark's JSON without those whose type is not on the list.

    Args:
        found: JSON text.
        source: file or table that contains it, for messages.

    Raises:
        ZorderError: it is not JSON of columns.
    """
    try:
        fields = _struct(found)["fields"]
    except Exception as exc:
        msg = f"The columns in {source} cannot be read: {exc}. They are not used."
        raise ZorderError(msg) from exc
    columns: list[StructField] = []
    for field in fields:
        with contextlib.suppress(ZorderError):
            columns += columns_from_json({"type": "struct", "fields": [field]}, source).fields
    return StructType(columns)


def _struct(found: str | bytes | Mapping[str, Any]) -> dict[str, Any]:
    read = found if isinstance(found, Mapping) else json.loads(found)
    if not isinstance(read, dict) or read.get("type") != "struct" or not isinstance(read.get("fields"), list):
        msg = f"{_shown(read)} is no struct of fields"
        raise ValueError(msg)
    return read


def _check(kind: Any) -> None:
    """Raise if a type, or a type inside it, is not on the list.

    Raises:
        ValueError: it is not.
    """
    if isinstance(kind, str):
        if _ATOMIC.fullmatch(kind) is None:
            msg = f"{_shown(kind)} is no type of Spark's own"
            raise ValueError(msg)
        return
    if not isinstance(kind, dict) or not isinstance(kind.get("type"), str) or kind["type"] not in _NESTED:
        msg = f"{_shown(kind)} is no type of Spark's own"
        raise ValueError(msg)
    for key in _NESTED[kind["type"]]:
        _check(kind.get(key))
    if kind["type"] == "struct":
        for field in _struct(kind)["fields"]:
            _check_field(field)


def _check_field(field: Any) -> None:
    if (
        not isinstance(field, dict)
        or not isinstance(field.get("name"), str)
        or not isinstance(field.get("nullable", True), bool)
        or not isinstance(field.get("metadata") or {}, dict)
    ):
        msg = f"{_shown(field)} is no field of a struct"
        raise ValueError(msg)
    _check(field.get("type"))


def _shown(value: Any) -> str:
    """Return a value for a message; for a ``udt`` only its name, without its contents."""
    if isinstance(value, dict) and isinstance(value.get("type"), str):
        value = value["type"]
    text = repr(value)
    return text if len(text) <= _WHOLE else f"{text[:_WHOLE]}..."
