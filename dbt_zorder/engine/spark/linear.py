"""Lexicographic order of several columns: files are ranges of it, and rows stand in it.

A cut is a tuple of keys. Spark compares structs field by field with NULL below everything, as its sort does, and never
answers NULL unless a whole struct is.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as t

from dbt_zorder.curve.bits import float_integers
from dbt_zorder.engine.local.compare import binaries, integers
from dbt_zorder.engine.spark.literals import KeyValue, json_text
from dbt_zorder.layout.keys import TEXT, Key
from dbt_zorder.spark.ordering import is_ordered
from dbt_zorder.spark.sql import constant_array

_SIGN = np.int64(-(1 << 63))
"""Its bit turned, numbers stand in the order of their bytes."""


def prefix(keys: Sequence[Key]) -> Sequence[Key]:
    """Return the first keys, up to one that tells less than its column: behind it the order of keys is another."""
    for number, key in enumerate(keys, start=1):
        if isinstance(key.column.data_type, (t.ArrayType, t.StructType)):
            return keys[:number]
    return keys


def tuple_sql(keys: Sequence[Key]) -> str:
    """Return SQL text of a row's keys as one struct."""
    # as it was sampled, so that long text is equal to what is cut from it, and the columns behind it count
    fields = [f"'c{number}', {key.sampled}" for number, key in enumerate(keys)]
    return f"named_struct({', '.join(fields)})"


def tuple_array(cuts: Sequence[Sequence[KeyValue | None]], carriers: Sequence[str]) -> str:
    """Return a constant SQL array of tuples, made like ``tuple_sql`` does.

    Args:
        cuts: one list a key, None for NULL; a tuple of nothing but NULL, at or above which is everything, is none.
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
    # numbers go as text and are cast, so that nothing depends on how JSON reads them; binary is base64 there, and so is
    # text, which is sampled as binary
    binary = [carrier in TEXT for carrier in carriers]
    read = ", ".join(f"c{n}: {'binary' if b else 'string'}" for n, b in enumerate(binary))
    wanted = ", ".join(f"c{n}: {'binary' if b else c}" for n, (b, c) in enumerate(zip(binary, carriers, strict=True)))
    return f"CAST({constant_array(items, f'struct<{read}>')} AS ARRAY<STRUCT<{wanted}>>)"


def tuples_here(columns: Sequence[pa.Array]) -> pa.Array:
    """Return rows' keys as binaries in the same order: each key's bytes behind one that tells NULL from all else.

    Args:
        columns: one a key, as ``key_here`` gives it.
    """
    return pc.binary_join_element_wise(*(part for column in columns for part in _in_bytes(column)), b"")


def tuples_of(cuts: Sequence[Sequence[KeyValue | None]], types: Sequence[pa.DataType]) -> list[bytes | None]:
    """Return tuples of keys in that form, None where there is no cut.

    Args:
        cuts: one list a key, as for ``tuple_array``.
        types: of keys, in Arrow.
    """
    found = tuples_here([pa.array(values, kind) for values, kind in zip(cuts, types, strict=True)]).to_pylist()
    return [
        None if all(value is None for value in values) else one
        for values, one in zip(zip(*cuts, strict=True), found, strict=True)
    ]


def _in_bytes(values: pa.Array) -> tuple[pa.Array, pa.Array]:
    there = pc.if_else(values.is_valid(), pa.scalar(b"\x01"), pa.scalar(b"\x00"))
    if pa.types.is_binary(values.type):
        # a longer text stands behind its own beginning, whatever follows in the tuple
        escaped = pc.replace_substring(pc.fill_null(values, b""), pattern=b"\x00", replacement=b"\x00\xff")
        return there, pc.binary_join_element_wise(escaped, pa.scalar(b"\x00\x00"), b"")
    if pa.types.is_decimal(values.type):
        plain = pa.concat_arrays([pc.fill_null(values, pa.scalar(Decimal(0), values.type))])  # from the buffer's start
        halves = np.frombuffer(plain.buffers()[1] or b"", dtype=np.int64)[: 2 * len(values)].reshape(-1, 2)
        return there, _of_words(np.stack([halves[:, 1] ^ _SIGN, halves[:, 0]], axis=1))
    if pa.types.is_floating(values.type):
        numbers = float_integers(np.asarray(pc.fill_null(values, 0.0).to_numpy(zero_copy_only=False)), "double")
    else:
        numbers = integers(values)
    return there, _of_words((numbers ^ _SIGN).reshape(-1, 1))


def _of_words(words: npt.NDArray[np.int64]) -> pa.Array:
    return binaries(words.astype(">i8").view(np.uint8).reshape(len(words), 8 * words.shape[1]))


def order_sql(keys: Sequence[Key]) -> list[str]:
    """Return SQL text of what rows are sorted by: the columns themselves.

    Text of any collation goes by its bytes, and what Spark can order by its beginning alone by that.
    """

    def by_key(data_type: t.DataType) -> bool:
        return data_type.simpleString().startswith("string collate") or not is_ordered(data_type)

    return [key.expression if by_key(key.column.data_type) else key.column.sql for key in keys]
