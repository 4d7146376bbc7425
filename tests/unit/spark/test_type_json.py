from __future__ import annotations

import json
from typing import Any

import pytest
from pyspark.sql import types as t

from dbt_zorder.errors import ZorderError
from dbt_zorder.spark.type_json import columns_from_json, plain_columns

ATOMIC = [
    "string", "binary", "boolean", "date", "timestamp", "timestamp_ntz", "byte", "short", "integer", "long", "float",
    "double", "decimal(38,5)", "decimal(5,-2)", "char(3)", "varchar(12)", "interval day to second", "interval hour",
    "interval year to month", "interval month",
]  # fmt: skip
UDT = {"type": "udt", "class": "java.lang.Object", "pyClass": "os.system", "sqlType": "string", "serializedClass": "x"}


def struct(kind: Any, name: Any = "a") -> dict[str, Any]:
    return {"type": "struct", "fields": [{"name": name, "type": kind, "nullable": True, "metadata": {"comment": "c"}}]}


@pytest.mark.parametrize("kind", ATOMIC)
def test_what_spark_writes_is_read_as_pyspark_reads_it(kind: str) -> None:
    array = {"type": "array", "elementType": kind, "containsNull": False}
    of_map = {"type": "map", "keyType": "string", "valueType": array, "valueContainsNull": True}
    for one in (kind, array, of_map, struct(kind), struct(of_map)):
        found = columns_from_json(json.dumps(struct(one)), "a file")
        assert found == t.StructType.fromJson(struct(one))
        assert columns_from_json(found.json(), "a file") == found


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("variant", "VariantType"),
        ("string collate UNICODE_CI", "StringType"),
        ("time(6)", "TimeType"),
        ("geometry(OGC:CRS84)", "GeometryType"),
        ("geography(OGC:CRS84, SPHERICAL)", "GeographyType"),
    ],
)
def test_types_of_later_releases_are_read_where_they_are(kind: str, name: str) -> None:
    if not hasattr(t, name) or (name == "StringType" and not hasattr(t.StringType(), "collation")):
        with pytest.raises(ZorderError, match=r"a file cannot be read"):
            columns_from_json(struct(kind), "a file")
        return
    assert type(columns_from_json(struct(kind), "a file")["a"].dataType).__name__ == name


@pytest.mark.parametrize("where", ["column", "array", "key", "value", "field"])
def test_a_user_defined_type_is_an_error_wherever_it_stands(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(t.UserDefinedType, "fromJson", lambda *_: pytest.fail("a class was looked up"))
    kinds: dict[str, Any] = {
        "column": UDT,
        "array": {"type": "array", "elementType": UDT, "containsNull": True},
        "key": {"type": "map", "keyType": UDT, "valueType": "long", "valueContainsNull": True},
        "value": {"type": "map", "keyType": "long", "valueType": UDT, "valueContainsNull": True},
        "field": struct(UDT),
    }
    with pytest.raises(ZorderError, match=r"columns in file:/x cannot be read: 'udt' is no type of Spark's own"):
        columns_from_json(json.dumps(struct(kinds[where])), "file:/x")
    whole = {"type": "struct", "fields": [*struct(kinds[where])["fields"], *struct("long", "b")["fields"]]}
    assert plain_columns(json.dumps(whole), "file:/x").names == ["b"]


NO_TYPES: list[Any] = [
    None, 1, [], {}, "", "long ", "longer", "decimal(1,2)) x", "varchar(99999999999)", "string collate a b",
    {"type": ["struct"]}, {"type": "udt"}, {"type": "class"}, {"type": "array"}, {"type": "map", "keyType": "long"},
]  # fmt: skip
NO_NAMES: list[Any] = [None, 1, []]


@pytest.mark.parametrize(
    "found",
    [
        "", "no json", "[]", "1", "null", '"long"', "{}", '{"type": "struct"}', '{"type": "struct", "fields": {}}',
        '{"type": "array", "elementType": "long", "containsNull": true}', "[" * 100_000,
        *(json.dumps(struct(kind)) for kind in NO_TYPES),
        *(json.dumps(struct("long", name)) for name in NO_NAMES),
        json.dumps({"type": "struct", "fields": [{"name": "a", "type": "long", "nullable": "yes"}]}),
        json.dumps({"type": "struct", "fields": [{"name": "a", "type": "long", "metadata": [1]}]}),
        json.dumps({"type": "struct", "fields": ["long"]}),
    ],
)  # fmt: skip
def test_what_is_no_json_of_columns_is_an_error_that_names_its_place(found: str) -> None:
    with pytest.raises(ZorderError, match=r"^The columns in file:/x cannot be read: "):
        columns_from_json(found, "file:/x")
