"""Keys of rows on a curve, by NumPy and Arrow: what ``curve_key`` is in Spark, over keys as of ``FetchedKeys``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dbt_zorder.curve.hilbert import hilbert_digits
from dbt_zorder.curve.morton import digits, interleave_bytes, pack_bytes, pack_long
from dbt_zorder.layout.bit_keys import bits_here
from dbt_zorder.layout.comparing import at_or_below, binaries, cuts_of
from dbt_zorder.layout.curve_key import CurveKey
from dbt_zorder.layout.keys import Key
from dbt_zorder.layout.linear import tuples_here


def curve_values(curve: CurveKey, keys: Sequence[Key], columns: Sequence[pa.Array]) -> pa.Array:
    """Return what rows may be sorted and cut by: whole numbers or binaries, of one column alone its keys.

    Args:
        curve: complete, with its boundaries if it has any.
        keys: of the columns.
        columns: one a key, as ``key_here`` gives it.
    """
    if curve.curve == "linear":
        return tuples_here(columns) if curve.cuts_files else columns[0]
    if curve.encoding == "rank":
        each = zip(columns, keys, curve.boundaries, curve.codes, strict=True)
        levels = digits(np.stack([_ranks(*one) for one in each], axis=1), curve.bits)
        return pa.array(pack_long(hilbert_digits(levels, len(keys)) if curve.curve == "hilbert" else levels, len(keys)))
    bits = [bits_here(values, key.column) for values, key in zip(columns, keys, strict=True)]
    values = np.stack(bits, axis=1).view(np.uint64)
    if curve.curve == "zorder":
        return binaries(interleave_bytes(values))
    return binaries(pack_bytes(hilbert_digits(digits(values, curve.bits), len(keys)), len(keys)))


def _ranks(values: pa.Array, key: Key, boundaries: Sequence[object], codes: Sequence[int]) -> npt.NDArray[np.uint64]:
    slots = np.ones(len(values), dtype=np.int32)
    if boundaries:
        slots += at_or_below(values, cuts_of(boundaries, key.carrier)[0])
    if values.null_count:
        slots[values.is_null().to_numpy(zero_copy_only=False)] = 0
    return np.asarray(codes, dtype=np.uint64)[slots]
