"""Parse types as Spark writes them in the result of DESCRIBE: ``struct<a:int,b:array<decimal(10,2)>>``."""

from __future__ import annotations

from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from dbt_zorder.errors import ZorderError
from dbt_zorder.spark.type_json import columns_from_json

_JSON_NAMES = {"tinyint": "byte", "smallint": "short", "int": "integer", "bigint": "long"}
"""Names of types that differ in Spark's JSON."""

MORE_FIELDS = " more fields>"
"""End of a type that Spark has truncated, see ``spark.sql.debug.maxToStringFields``."""


def parse_type(text: str) -> DataType:
    """Return the type of a text.

    Raises:
        ZorderError: this is not the text of a type, or not of one that the installed PySpark supports.
    """
    inner = _inside(text, "array")
    if inner is not None:
        return ArrayType(parse_type(inner))
    inner = _inside(text, "map")
    if inner is not None:
        kinds = _parts(inner)
        if len(kinds) == 2:
            return MapType(parse_type(kinds[0]), parse_type(kinds[1]))
    inner = _inside(text, "struct")
    if inner is not None:
        return StructType([_field(part) for part in _parts(inner)])
    plain = text.strip()
    field = {"name": "c", "type": _JSON_NAMES.get(plain, plain), "nullable": True, "metadata": {}}
    return columns_from_json({"type": "struct", "fields": [field]}, f"the type '{text}'")["c"].dataType


def _field(text: str) -> StructField:
    """Return the field of a struct; its name ends at the first colon outside backticks."""
    end = text.find("`:", 1) + 1 if text.startswith("`") else text.find(":")
    if end <= 0:
        msg = f"The field '{text}' of a struct has no type; a name with a colon cannot be told from one."
        raise ZorderError(msg)
    name = text[:end]
    if name.startswith("`"):
        name = name[1:-1].replace("``", "`")
    return StructField(name, parse_type(text[end + 1 :]))


def _inside(text: str, kind: str) -> str | None:
    """Return what is between the angle brackets of a nested type; None for any other type."""
    text = text.strip()
    return text[len(kind) + 1 : -1] if text.startswith(f"{kind}<") and text.endswith(">") else None


def _parts(text: str) -> list[str]:
    """Return the parts of a text between its commas, except for commas inside brackets or backticks."""
    parts, depth, quoted = [""], 0, False
    for char in text:
        quoted ^= char == "`"
        depth += 0 if quoted else (char in "<(") - (char in ">)")
        if char == "," and not depth and not quoted:
            parts.append("")
        else:
            parts[-1] += char
    return [part for part in parts if part]
