"""Numbers of fields in a Parquet file's schema."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq

from dbt_zorder.engine.parquet.field_ids import numbered

NESTED = pa.schema(
    [
        ("a", pa.int64()),
        ("s", pa.struct([("x", pa.string()), ("l", pa.list_(pa.float64()))])),
        ("m", pa.map_(pa.string(), pa.struct([("y", pa.int32())]))),
    ]
)
NUMBERS = {
    ("a",): 1,
    ("s",): 2,
    ("m",): 3,
    ("s", "x"): 4,
    ("s", "l"): 5,
    ("s", "l", "element"): 6,
    ("m", "key"): 7,
    ("m", "value"): 8,
    ("m", "value", "y"): 9,
}


def test_a_file_has_the_number_of_each_field() -> None:
    sink, rows = io.BytesIO(), NESTED.empty_table()
    with pq.ParquetWriter(sink, numbered(NESTED, NUMBERS), store_schema=False) as writer:
        writer.write_table(rows)
    schema = pq.read_schema(pa.BufferReader(sink.getvalue()))
    found: dict[tuple[str, ...], int] = {}

    def walk(field: pa.Field, path: tuple[str, ...]) -> None:
        found[path] = int(field.metadata[b"PARQUET:field_id"])
        if pa.types.is_struct(field.type):
            for inner in field.type:
                walk(inner, (*path, inner.name))
        elif pa.types.is_map(field.type):
            walk(field.type.key_field, (*path, "key"))
            walk(field.type.item_field, (*path, "value"))
        elif pa.types.is_list(field.type):
            walk(field.type.value_field, (*path, "element"))

    for field in schema:
        walk(field, (field.name,))
    assert found == NUMBERS


def test_without_numbers_a_schema_is_as_it_was() -> None:
    assert numbered(NESTED, {}) is NESTED
