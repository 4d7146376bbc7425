"""Read column bounds from footers, or from the values of float columns whose footers lack bounds due to NaN."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dbt_zorder.engine.parquet.leaves import leaves_of


@dataclass(frozen=True)
class FloatValues:
    """A summary of the floats of one column in one file.

    Attributes:
        nulls, nans: the number of NULL and of NaN values.
        least, most: the bounds of all other values; None if there are none.
    """

    nulls: int
    nans: int
    least: pa.Scalar | None
    most: pa.Scalar | None


def leaf_numbers(footer: pq.FileMetaData) -> dict[str, list[int]]:
    """Return the leaf numbers for each path; a column ``a.b`` and a field ``b`` of ``a`` share one."""
    found: dict[str, list[int]] = {}
    for number in range(len(footer.schema)):
        found.setdefault(footer.schema.column(number).path, []).append(number)
    return found


def statistics_of(footer: pq.FileMetaData, places: Sequence[int]) -> list[pq.Statistics | None]:
    """Return the statistics of each row group for the given leaves."""
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    return [group.column(place).statistics for group in groups for place in places]


def is_bounded(chunks: Sequence[pq.Statistics | None]) -> bool:
    """Return whether the bounds cover all values: each row group with values must have both bounds."""
    return bool(chunks) and all(one is not None and (one.has_min_max or not one.num_values) for one in chunks)


def float_values(file: str, path: str) -> FloatValues:
    """Read the values of a leaf of floats.

    Args:
        file: the path of a Parquet file on this machine.
        path: the path of the leaf, unique in the file.
    """
    with pq.ParquetFile(file) as opened:
        leaf = dict(leaves_of(opened.read([path])))[path]
    values = leaf.drop_null()
    isnan = pc.is_nan(values)
    least, most = pc.min_max(values.filter(pc.invert(isnan))).values()
    is_known = least.is_valid
    nans = int(pc.sum(isnan).as_py() or 0)
    return FloatValues(leaf.null_count, nans, least if is_known else None, most if is_known else None)
