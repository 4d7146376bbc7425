"""What footers tell of the bounds of a column, and what is read of floats where they tell none, as there is NaN."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dbt_zorder.engine.parquet.schema import leaves_of


@dataclass(frozen=True)
class FloatValues:
    """Floats of a file.

    Attributes:
        nulls, nans: how many are NULL, and how many NaN.
        least, most: of all others; None if there are none.
    """

    nulls: int
    nans: int
    least: pa.Scalar | None
    most: pa.Scalar | None


def leaf_places(footer: pq.FileMetaData) -> dict[str, list[int]]:
    """Return which leaves of a file have a path; two may have one, a column ``a.b`` and a field ``b`` of ``a``."""
    found: dict[str, list[int]] = {}
    for number in range(len(footer.schema)):
        found.setdefault(footer.schema.column(number).path, []).append(number)
    return found


def statistics_of(footer: pq.FileMetaData, places: Sequence[int]) -> list[pq.Statistics | None]:
    """Return what each row group tells of some leaves."""
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    return [group.column(place).statistics for group in groups for place in places]


def is_bounded(told: Sequence[pq.Statistics | None]) -> bool:
    """Tell whether bounds are those of all values: each row group that has any tells both of its own."""
    return bool(told) and all(one is not None and (one.has_min_max or not one.num_values) for one in told)


def float_values(file: str, path: str) -> FloatValues:
    """Read a leaf of floats.

    Args:
        file: of Parquet, on this machine.
        path: of the leaf, which no other has.
    """
    with pq.ParquetFile(file) as opened:
        leaf = dict(leaves_of(opened.read([path])))[path]
    values = leaf.drop_null()
    isnan = pc.is_nan(values)
    least, most = pc.min_max(values.filter(pc.invert(isnan))).values()
    is_known = least.is_valid
    nans = int(pc.sum(isnan).as_py() or 0)
    return FloatValues(leaf.null_count, nans, least if is_known else None, most if is_known else None)
