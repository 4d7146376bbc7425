"""Sets field ids in a Parquet file's schema: formats with renamed columns find their columns by them."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa


def numbered(schema: pa.Schema, numbers: Mapping[tuple[str, ...], int]) -> pa.Schema:
    """Return a schema whose fields, nested ones included, have a ``field_id``.

    Args:
        schema: Arrow schema of any types.
        numbers: ids of fields by their path; an array's elements are ``element``, a map's ``key`` and ``value``.
    """
    return pa.schema([_numbered(one, (), numbers) for one in schema]) if numbers else schema


def _numbered(
    one: pa.Field, above: tuple[str, ...], numbers: Mapping[tuple[str, ...], int], name: str = ""
) -> pa.Field:
    path, kind = (*above, name or one.name), one.type
    if pa.types.is_struct(kind):
        kind = pa.struct([_numbered(inner, path, numbers) for inner in kind])
    elif pa.types.is_map(kind):
        inner = zip((kind.key_field, kind.item_field), ("key", "value"), strict=True)
        kind = pa.map_(*(_numbered(field, path, numbers, name) for field, name in inner))
    elif pa.types.is_list(kind):
        kind = pa.list_(_numbered(kind.value_field, path, numbers, "element"))
    return pa.field(one.name, kind, one.nullable, {b"PARQUET:field_id": str(numbers[path]).encode()})
