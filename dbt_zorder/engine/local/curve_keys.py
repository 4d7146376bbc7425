"""Computes keys on a curve with NumPy and Arrow, from keys as in ``FetchedKeys``; ``curve_sql`` does it in Spark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dbt_zorder.engine.local.compare import at_or_below, cuts_of
from dbt_zorder.engine.local.linear import tuples_here
from dbt_zorder.layout.bit_keys import bit_values
from dbt_zorder.layout.curve import Curve, packed
from dbt_zorder.layout.key_arrays import binaries
from dbt_zorder.layout.keys import Key


def curve_cuts(curve: Curve, keys: Sequence[Key]) -> list[Any]:
    """Return the boundaries of a curve in the form for ``at_or_below``, one per column; none if it has none."""
    # a curve of bits has no boundaries
    return [cuts_of(values, key.carrier)[0] for values, key in zip(curve.boundaries, keys, strict=False)]


def curve_values(curve: Curve, cuts: Sequence[Any], keys: Sequence[Key], columns: Sequence[pa.Array]) -> pa.Array:
    """Return the sort and cut keys of rows along several columns: whole numbers or binaries.

    Args:
        curve: complete curve, including its boundaries.
        cuts: cuts from ``curve_cuts``.
        keys: keys of the columns.
        columns: Arrow array of each key, as from ``key_values``.
    """
    if curve.curve == "linear":
        return tuples_here(columns)
    if curve.encoding == "rank":
        values = [_ranks(*one) for one in zip(columns, cuts, curve.codes, strict=True)]
    else:
        values = [bit_values(one, key.column).view(np.uint64) for one, key in zip(columns, keys, strict=True)]
    found = packed(curve, np.stack(values, axis=1))
    return pa.array(found) if curve.carrier == "bigint" else binaries(found)


def _ranks(values: pa.Array, cuts: Any, codes: Sequence[int]) -> npt.NDArray[np.uint64]:
    slots = np.ones(len(values), dtype=np.int32)
    if len(cuts):
        slots += at_or_below(values, cuts)
    if values.null_count:
        slots[values.is_null().to_numpy(zero_copy_only=False)] = 0
    return np.asarray(codes, dtype=np.uint64)[slots]
