"""What Arrow's writer is told of each column, so that a file serves its readers as parquet-java's would."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_PAGE_BYTES, _BATCH_ROWS = 1 << 20, 1024
"""Of a page at most, as in Spark's files, and after how many rows Arrow looks at that by itself."""
_INDEX_BITS = 8
_FALSE_HITS = 0.01
"""Share of values that are not there and that a bloom filter lets pass: parquet-java's."""
_MOST_VALUES = 860_000
"""For how many a filter takes a megabyte, ``parquet.bloom.filter.max.bytes``."""


@dataclass(frozen=True)
class Traits:
    """What the columns of a file are like, as far as Arrow is to know it before it gets the first row.

    Attributes:
        repeating: columns that are written with a dictionary.
        bounded: columns whose bounds serve every reader.
        batch_rows: after how many rows Arrow is to look at the size of a page.
        group_rows: of a row group at most.
    """

    repeating: Sequence[str]
    bounded: Sequence[str]
    batch_rows: int
    group_rows: int

    @classmethod
    def of(cls, rows: pa.Table, page_rows: int, group_rows: int) -> Traits:
        """Return those of some rows in row groups of so many."""
        widest = max((int(column.nbytes) for column in rows.columns), default=0) // max(1, rows.num_rows)
        return cls(
            repeating=[name for name in rows.column_names if _has_dictionary(rows[name], page_rows)],
            bounded=[name for name in rows.column_names if _are_bounded(rows[name], group_rows)],
            batch_rows=_batch_rows(widest),
            group_rows=group_rows,
        )

    def beside(self, told: pa.Table, rows: int, row_bytes: int) -> Traits:
        """Return what they are if the file has a row group besides.

        Args:
            told: its columns that ``telling`` names.
            rows: of it.
            row_bytes: that a row of it takes.
        """
        columns = {name: told[name] for name in told.column_names}
        return Traits(
            [one for one in self.repeating if one not in columns or not _has_negative_zero(columns[one])],
            [one for one in self.bounded if one not in columns or _are_bounded(columns[one], rows)],
            min(self.batch_rows, _batch_rows(row_bytes)),
            max(self.group_rows, rows),
        )


def telling(schema: pa.Schema) -> list[str]:
    """Return the columns of which one row group may have what another has not told."""
    return [field.name for field in schema if pa.types.is_floating(field.type)]


def _has_dictionary(column: pa.ChunkedArray, page_rows: int) -> bool:
    """Tell whether a column is written with a dictionary: where it spares bytes, and loses no reader a row."""
    return _repeats(column[:page_rows]) and not _has_negative_zero(column)


def _has_negative_zero(column: pa.ChunkedArray) -> bool:
    """Tell whether -0.0 is in a column.

    parquet-java, asked for 0.0, leaves a row group out if its dictionary has -0.0 alone: so Spark loses such rows of
    its own files, and finds them here.
    """
    if not pa.types.is_floating(column.type):
        return False
    zeros = column.filter(pc.equal(column, pa.scalar(0, column.type))).to_numpy()
    return bool(np.signbit(zeros).any())


def _repeats(page: pa.ChunkedArray) -> bool:
    """Tell whether a dictionary spares bytes by a column's first page, which is how parquet-java decides."""
    values = page.combine_chunks().drop_null()
    if pa.types.is_boolean(values.type) or not len(values):
        return False
    distinct = values.unique()
    bits = max(1, (len(distinct) - 1).bit_length())
    return _plain_bytes(distinct) + len(values) * bits / _INDEX_BITS < _plain_bytes(values)


def _batch_rows(widest: int) -> int:
    """Return after how many rows Arrow is to look at the size of a page, which of long text would be far too large.

    Args:
        widest: bytes of a value of the widest column.
    """
    return int(max(1, min(_BATCH_ROWS, _PAGE_BYTES // max(1, widest))))


def _are_bounded(column: pa.ChunkedArray, group_rows: int) -> bool:
    """Tell whether Arrow's bounds of a column serve every reader.

    They do not include NaN, and to Spark it is above all numbers: a filter for it would find nothing. As by
    parquet-java, such a column gets none. Nor does one of whose row groups holds nothing but zero: its bounds are -0.0
    and 0.0, as the specification asks, from which PyArrow concludes that all are -0.0, and ``isin`` finds no 0.0.
    """
    if not pa.types.is_floating(column.type):
        return True
    if pc.any(pc.is_nan(column)).as_py():
        return False
    groups = (column[start : start + group_rows] for start in range(0, len(column), group_rows))
    return not any(pc.max(pc.abs(group)).as_py() == 0 for group in groups)


def bloom_filters(schema: pa.Schema, columns: Collection[str], group_rows: int) -> dict[str, Any]:
    """Return how Arrow is asked for the bloom filters of some columns; it folds each to what its values ask for.

    Of a boolean, which it has none of, the bounds say as much. A partition column is in no file.
    """
    size = {"ndv": max(1, min(group_rows, _MOST_VALUES)), "fpp": _FALSE_HITS}
    chosen = [name for name in columns if name in schema.names and not pa.types.is_boolean(schema.field(name).type)]
    return {"bloom_filter_options": dict.fromkeys(chosen, size)} if chosen else {}


def _plain_bytes(values: pa.Array) -> int:
    if pa.types.is_string(values.type) or pa.types.is_binary(values.type):
        return int(pc.sum(pc.binary_length(values)).as_py() or 0) + 4 * len(values)
    if pa.types.is_decimal(values.type):
        return len(values) * (4 if values.type.precision <= 9 else 8 if values.type.precision <= 18 else 16)
    return int(len(values) * max(4, values.type.bit_width // 8))
