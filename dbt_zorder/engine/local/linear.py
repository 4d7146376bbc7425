"""Encodes tuples of keys as binaries in lexicographic order."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dbt_zorder.curve.bits import float_integers
from dbt_zorder.layout.key_arrays import binaries, integers
from dbt_zorder.layout.keys import KeyValue

_SIGN = np.int64(-(1 << 63))
"""Flipping this bit makes the order of big-endian bytes that of the numbers."""


def tuples_here(columns: Sequence[pa.Array]) -> pa.Array:
    """Return rows' keys as binaries in the same order: each key's bytes follow a byte that is 0 for NULL.

    Args:
        columns: Arrow array of each key, as from ``key_values``.
    """
    return pc.binary_join_element_wise(*(part for column in columns for part in _in_bytes(column)), b"")


def tuples_of(cuts: Sequence[Sequence[KeyValue | None]], types: Sequence[pa.DataType]) -> list[bytes | None]:
    """Return tuples of keys in the form of ``tuples_here``, None for no cut.

    Args:
        cuts: one list per key, as for ``tuple_array``.
        types: Arrow types of the keys.
    """
    found = tuples_here([pa.array(values, kind) for values, kind in zip(cuts, types, strict=True)]).to_pylist()
    return [
        None if all(value is None for value in values) else one
        for values, one in zip(zip(*cuts, strict=True), found, strict=True)
    ]


def _in_bytes(values: pa.Array) -> tuple[pa.Array, pa.Array]:
    there = pc.if_else(values.is_valid(), pa.scalar(b"\x01"), pa.scalar(b"\x00"))
    if pa.types.is_binary(values.type):
        # a longer text sorts after its own prefix, whatever follows in the tuple
        escaped = pc.replace_substring(pc.fill_null(values, b""), pattern=b"\x00", replacement=b"\x00\xff")
        return there, pc.binary_join_element_wise(escaped, pa.scalar(b"\x00\x00"), b"")
    if pa.types.is_decimal(values.type):
        # copied, so that values begin at the buffer's start
        plain = pa.concat_arrays([pc.fill_null(values, pa.scalar(Decimal(0), values.type))])
        halves = np.frombuffer(plain.buffers()[1] or b"", dtype=np.int64)[: 2 * len(values)].reshape(-1, 2)
        return there, _of_words(np.stack([halves[:, 1] ^ _SIGN, halves[:, 0]], axis=1))
    if pa.types.is_floating(values.type):
        numbers = float_integers(np.asarray(pc.fill_null(values, 0.0).to_numpy(zero_copy_only=False)), "double")
    else:
        numbers = integers(values)
    return there, _of_words((numbers ^ _SIGN).reshape(-1, 1))


def _of_words(words: npt.NDArray[np.int64]) -> pa.Array:
    return binaries(words.astype(">i8").view(np.uint8).reshape(len(words), 8 * words.shape[1]))
