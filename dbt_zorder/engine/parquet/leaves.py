"""Lists the leaves of columns, nested or not, by their paths in Parquet."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc


def leaves_of(rows: pa.Table) -> Iterator[tuple[str, pa.ChunkedArray]]:
    """Yield the values of each leaf in turn: all elements of an array, and NULL where a struct is NULL.

    Paths are the same in files of Spark and of Arrow: ``tags.list.element``, ``counts.key_value.value``,
    ``shop.country``. See "Nested Types" of the Parquet specification, LogicalTypes.md.
    """
    for name in rows.column_names:
        yield from _leaves(name, rows[name])


def leaf_types(schema: pa.Schema) -> dict[str, pa.DataType]:
    """Return the type of each leaf by its path."""
    return {path: values.type for path, values in leaves_of(schema.empty_table())}


def _leaves(path: str, column: pa.ChunkedArray) -> Iterator[tuple[str, pa.ChunkedArray]]:
    kind = column.type
    if pa.types.is_struct(kind):
        for field, values in zip(kind, column.flatten(), strict=True):
            yield from _leaves(f"{path}.{field.name}", values)
    elif pa.types.is_map(kind):
        entries = pa.struct([kind.key_field, kind.item_field])
        for field, values in zip(entries, pc.list_flatten(column.cast(pa.list_(entries))).flatten(), strict=True):
            yield from _leaves(f"{path}.key_value.{field.name}", values)
    elif pa.types.is_list(kind):
        yield from _leaves(f"{path}.list.element", pc.list_flatten(column))
    else:
        yield path, column
