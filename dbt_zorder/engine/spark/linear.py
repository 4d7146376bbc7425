"""Orders rows lexicographically by several columns: files are ranges of this order.

A cut is a tuple of keys. Spark compares structs field by field with NULL below everything, as its sort does. The
comparison is NULL only if a whole struct is.
"""

from __future__ import annotations

from collections.abc import Sequence

from dbt_zorder.engine.spark.literals import json_text
from dbt_zorder.layout.keys import TEXT, Key, KeyValue
from dbt_zorder.spark.sql import constant_array


def tuple_sql(keys: Sequence[Key]) -> str:
    """Return SQL text of a row's keys as one struct."""
    # as sampled, so that long text equals its truncated form and the following columns decide
    fields = [f"'c{number}', {key.sampled}" for number, key in enumerate(keys)]
    return f"named_struct({', '.join(fields)})"


def tuple_array(cuts: Sequence[Sequence[KeyValue | None]], carriers: Sequence[str]) -> str:
    """Return a constant SQL array of tuples, in the form of ``tuple_sql``.

    Args:
        cuts: one list per key, None for NULL; a tuple of NULLs alone is no cut, as everything is at or above it.
        carriers: SQL type of each key.
    """
    items = [
        None
        if all(value is None for value in values)
        else {
            f"c{n}": json_text(value, carrier) for n, (value, carrier) in enumerate(zip(values, carriers, strict=True))
        }
        for values in zip(*cuts, strict=True)
    ]
    # Numbers are cast from text, so that nothing depends on JSON's number parsing. Binary is base64, and so is text,
    # which is sampled as binary.
    binary = [carrier in TEXT for carrier in carriers]
    read = ", ".join(f"c{n}: {'binary' if b else 'string'}" for n, b in enumerate(binary))
    wanted = ", ".join(f"c{n}: {'binary' if b else c}" for n, (b, c) in enumerate(zip(binary, carriers, strict=True)))
    return f"CAST({constant_array(items, f'struct<{read}>')} AS ARRAY<STRUCT<{wanted}>>)"
