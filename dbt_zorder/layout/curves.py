"""Layouts by a curve other than the default: the choice of the curve, its sampled keys and its cuts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dbt_zorder.curve.morton import LONG_BITS
from dbt_zorder.curve.rank_bits import rank_slots
from dbt_zorder.curve.ranks import Ranks
from dbt_zorder.curve.tree import Forest, grow
from dbt_zorder.errors import ConfigError, did_you_mean
from dbt_zorder.layout.bit_keys import bit_values, bits_of
from dbt_zorder.layout.curve import Curve, packed, prefix
from dbt_zorder.layout.keys import Key, KeyValue
from dbt_zorder.layout.known_keys import FetchedKeys
from dbt_zorder.layout.layout import Layout, LevelCuts
from dbt_zorder.layout.sample import Sample
from dbt_zorder.spark.arrow import one_chunk

CURVES = ("zorder", "hilbert", "linear")
ENCODINGS = ("rank", "bits")

_MOST_RANK_BITS = 10


def check_curve(curve: str, encoding: str, *, weighted: bool, columns: int) -> None:
    """Check that a curve and its encoding exist, and that every setting given has an effect.

    Raises:
        ConfigError: the curve or encoding does not exist, or a setting has no effect. The message lists the allowed
            names and the nearest one.
    """
    for what, given, allowed in (("curve", curve, CURVES), ("encoding", encoding, ENCODINGS)):
        if given not in allowed:
            names = ", ".join(repr(name) for name in allowed)
            msg = f"There is no {what} {given!r}; only {names} is allowed.{did_you_mean(str(given), allowed)}"
            raise ConfigError(msg)
    idle = setting_without_effect(curve, encoding, weighted=weighted, columns=columns)
    if idle is not None:
        msg = f"'{idle}' has no effect with the curve {curve!r}: leave out one of the two."
        raise ConfigError(msg)


def setting_without_effect(curve: str, encoding: str, *, weighted: bool, columns: int) -> str | None:
    """Return the setting, ``weights`` or ``encoding``, that has no effect along a curve; None if none."""
    if weighted and curve != CURVES[0] and columns > 1:
        return "weights"
    return "encoding" if encoding == "bits" and curve == "linear" else None


def curve_of(curve: str, encoding: str, columns: int) -> Curve | None:
    """Return the curve that the user asked for, without its boundaries; None for the default.

    The default has no key. A single column needs no other curve: its own order is optimal, and its tree cuts ranges.
    """
    if columns == 1:
        return Curve("linear")
    if (curve, encoding) == ("zorder", "rank"):
        return None
    if curve == "linear":
        return Curve("linear", cuts_files=True)
    return Curve(curve, encoding, cuts_files=curve == "hilbert")


def sampled_keys(curve: Curve | None, keys: Sequence[Key]) -> Sequence[Key]:
    """Return the keys to sample; for a curve of bits that cuts files, return its bits instead."""
    if _cuts_bits(curve):
        return [Key(key.column, bits_of(key.column), "bigint") for key in keys]
    return keys


def sampled_values(curve: Curve | None, keys: Sequence[Key], fetched: FetchedKeys) -> pa.Table:
    """Return the values of ``sampled_keys`` for rows whose keys are in this process."""
    found = fetched.sampled
    if _cuts_bits(curve):
        for number, key in enumerate(keys):
            bits = bit_values(one_chunk(fetched.keys.column(number)), key.column)
            found = found.set_column(number, found.field(number).name, pa.array(bits))
    return found


def _cuts_bits(curve: Curve | None) -> bool:
    return curve is not None and curve.cuts_files and curve.encoding == "bits"


def lay_out(
    curve: Curve,
    sample: Sample,
    keys: Sequence[Key],
    files: Sequence[int],
    weights: Sequence[float] | None,
    partition_columns: Sequence[str],
    partition_hashes: npt.NDArray[np.int64],
    rows: int,
) -> tuple[Forest, Layout]:
    """Cut a sample into files by a curve.

    Args:
        curve: curve from ``curve_of``.
        sample: sample of ``sampled_keys``.
        keys: keys of the clustering columns.
        files: number of files of each partition.
        weights: weight of each column; they count where a tree over the columns cuts files, not where a curve does.
        partition_columns: SQL names of the partition columns.
        partition_hashes: sorted 64-bit hashes of the partitions.
        rows: number of rows of the table.

    Returns:
        Forest and layout. Where a curve cuts files, the forest's cuts are ranks on it, in a single column.
    """
    if curve.curve == "linear" and curve.cuts_files:
        first = prefix(keys)
        tuples, numbers = np.unique(sample.ranks[:, : len(first)], axis=0, return_inverse=True)
        forest = grow(_as_ranks(numbers), sample.partitions, files, 0)
        levels = [_tuple_cuts(cuts[0], tuples, sample, first) if cuts.any() else {} for cuts in forest.cuts]
    else:
        curve, tables = (curve, []) if curve.curve == "linear" else grid(curve, sample, keys)
        if not curve.cuts_files:
            forest = grow(sample.ranks, sample.partitions, files, 0, weights)
            layout = Layout.of(forest, sample, keys, partition_columns, partition_hashes, rows)
            return forest, replace(layout, curve=curve)
        distinct, numbers = rank_along(curve, tables, sample)
        along = _as_ranks(numbers)
        forest = grow(along, sample.partitions, files, 0)
        of_curve = Sample(along, sample.partitions, [distinct])
        levels = [_curve_cuts(cuts[0], of_curve, curve.carrier) if cuts.any() else {} for cuts in forest.cuts]
    base = Layout.of(replace(forest, cuts=()), sample, keys, partition_columns, partition_hashes, rows)
    return forest, replace(base, levels=levels, curve=curve)


def grid(curve: Curve, sample: Sample, keys: Sequence[Key]) -> tuple[Curve, list[npt.NDArray[np.uint64]]]:
    """Complete a curve with boundaries from a sample, as many as keep its key in one BIGINT.

    Returns:
        The curve, and for each column the value of every rank in the sample, shape (distinct + 1,).
    """
    if curve.encoding == "bits":
        return curve, [_unsigned(distinct) for distinct in sample.distinct] if curve.cuts_files else []
    bits = min(_MOST_RANK_BITS, LONG_BITS // len(keys))
    boundaries: list[list[KeyValue]] = []
    codes: list[list[int]] = []
    tables = []
    for column, key in enumerate(keys):
        distinct = sample.distinct[column]
        has_nan = key.carrier == "double"
        nan_rank = len(distinct) if has_nan and len(distinct) and math.isnan(distinct[-1].as_py()) else 0
        slots = rank_slots(sample.ranks[:, column], bits, has_nan=has_nan, nan_rank=nan_rank)
        boundaries.append([sample.cut_value(column, cut, key.carrier) for cut in slots.cuts])
        if has_nan:
            boundaries[-1].append(math.nan)
        codes.append(slots.codes)
        ranks = np.arange(len(distinct) + 1)
        slot_of_rank = np.searchsorted(slots.cuts, ranks, side="right") + (ranks > 0)
        if nan_rank:
            slot_of_rank[nan_rank] = len(slots.codes) - 1
        tables.append(np.asarray(slots.codes, dtype=np.uint64)[slot_of_rank])
    return replace(curve, bits=bits, boundaries=boundaries, codes=codes), tables


def rank_along(
    curve: Curve, tables: Sequence[npt.NDArray[np.uint64]], sample: Sample
) -> tuple[pa.Array, npt.NDArray[np.int64]]:
    """Return the distinct keys of a sample in the curve's order, and the position of each row's key there.

    This is the driver's equivalent of ``add_curve`` in Spark.
    """
    values = np.stack([table[sample.ranks[:, column]] for column, table in enumerate(tables)], axis=1)
    keys = packed(curve, values)
    if curve.carrier == "bigint":
        found, numbers = np.unique(keys, return_inverse=True)
        return pa.array(found), numbers
    # NumPy orders opaque bytes as Spark does: unsigned, from the first byte on
    opaque, numbers = np.unique(keys.view(f"V{keys.shape[1]}").reshape(-1), return_inverse=True)
    return pa.array([value.tobytes() for value in opaque], type=pa.binary()), numbers


def _unsigned(bits: pa.Array) -> npt.NDArray[np.uint64]:
    """Return sampled bits by rank; the sample has no NULL, so the value of rank 0 is arbitrary."""
    numbers = np.asarray(bits.to_numpy(zero_copy_only=False), dtype=np.int64)
    return np.concatenate([np.zeros(1, dtype=np.int64), numbers]).view(np.uint64)


def _as_ranks(numbers: npt.NDArray[np.int64]) -> Ranks:
    return (numbers.reshape(-1, 1) + 1).astype(np.int32)


def _curve_cuts(cuts: npt.NDArray[np.int32], along: Sample, carrier: str) -> LevelCuts:
    return {0: [None if cut == 0 else along.cut_value(0, cut, carrier) for cut in cuts.tolist()]}


def _tuple_cuts(
    cuts: npt.NDArray[np.int32], tuples: npt.NDArray[np.int32], sample: Sample, keys: Sequence[Key]
) -> LevelCuts:
    """Return the keys of each cut, column by column; all of them are None where there is no cut."""
    return {
        column: [
            None if cut == 0 else sample.value(column, int(tuples[cut - 1, column]), key.carrier)
            for cut in cuts.tolist()
        ]
        for column, key in enumerate(keys)
    }
