"""What Arrow's writer is told of each column, so that a file serves its readers as parquet-java's would."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dbt_zorder.engine.parquet.schema import leaf_types, leaves_of
from dbt_zorder.spark.arrow import one_chunk

_PAGE_BYTES, _BATCH_ROWS = 1 << 20, 1024
"""Of a page at most, as in Spark's files, and after how many rows Arrow looks at that by itself."""
_INDEX_BITS = 8
_FALSE_HITS = 0.01
"""DataSize of values that are not there and that a bloom filter lets pass: parquet-java's."""
_MOST_VALUES = 860_000
"""For how many a filter takes a megabyte, ``parquet.bloom.filter.max.bytes``."""


@dataclass(frozen=True)
class Traits:
    """What the columns of a file are like, as far as Arrow is to know it before it gets the first row.

    Attributes:
        repeating: leaves of columns that are written with a dictionary, as of ``leaves_of``.
        bounded: leaves whose bounds serve every reader.
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
        floats = rows.select(float_columns(rows.schema))
        negative = _with_negative_zero(floats)
        groups = (floats[start : start + group_rows] for start in range(0, rows.num_rows, group_rows))
        unbounded = set().union(*map(_unbounded, groups))
        first = dict(leaves_of(rows[:page_rows]))
        return cls(
            # of arrays a page is not so many rows
            repeating=[path for path, page in first.items() if path not in negative and _repeats(page[:page_rows])],
            bounded=[path for path in first if path not in unbounded],
            batch_rows=_batch_rows(widest),
            group_rows=group_rows,
        )

    def with_row_group(self, floats: pa.Table, rows: int, row_bytes: int) -> Traits:
        """Return what they are if the file has a row group besides.

        Args:
            floats: its columns that ``float_columns`` names.
            rows: of it.
            row_bytes: that a row of it takes.
        """
        negative, unbounded = _with_negative_zero(floats), _unbounded(floats)
        return Traits(
            [path for path in self.repeating if path not in negative],
            [path for path in self.bounded if path not in unbounded],
            min(self.batch_rows, _batch_rows(row_bytes)),
            max(self.group_rows, rows),
        )


def float_columns(schema: pa.Schema) -> list[str]:
    """Return the columns of which one row group may have what another has not told."""
    empty = schema.empty_table()
    return [
        name
        for name in schema.names
        if any(pa.types.is_floating(values.type) for _, values in leaves_of(empty.select([name])))
    ]


def _with_negative_zero(floats: pa.Table) -> set[str]:
    """Return the leaves that have -0.0 in them.

    parquet-java, asked for 0.0, leaves a row group out if its dictionary has -0.0 alone: so Spark loses such rows of
    its own files, and finds them here.
    """
    return {path for path, values in leaves_of(floats) if _has_negative_zero(values)}


def _has_negative_zero(values: pa.ChunkedArray) -> bool:
    if not pa.types.is_floating(values.type):
        return False
    zeros = values.filter(pc.equal(values, pa.scalar(0, values.type))).to_numpy()
    return bool(np.signbit(zeros).any())


def _repeats(page: pa.ChunkedArray) -> bool:
    """Tell whether a dictionary spares bytes by a column's first page, which is how parquet-java decides."""
    values = one_chunk(page).drop_null()
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


def _unbounded(floats: pa.Table) -> set[str]:
    """Return the leaves of a row group of which Arrow's bounds do not serve every reader.

    They do not include NaN, and to Spark it is above all numbers: a filter for it would find nothing. As by
    parquet-java, such a column gets none. Nor does one of whose row groups holds nothing but zero: its bounds are -0.0
    and 0.0, as the specification asks, from which PyArrow concludes that all are -0.0, and ``isin`` finds no 0.0.
    """
    return {path for path, values in leaves_of(floats) if pa.types.is_floating(values.type) and _mislead(values)}


def _mislead(values: pa.ChunkedArray) -> bool:
    return bool(pc.any(pc.is_nan(values)).as_py()) or pc.max(pc.abs(values)).as_py() == 0


def bloom_filters(schema: pa.Schema, columns: Collection[str], group_rows: int) -> dict[str, Any]:
    """Return how Arrow is asked for the bloom filters of some columns; it folds each to what its values ask for.

    Of a boolean, which it has none of, the bounds say as much. A partition column is in no file.

    Args:
        schema: of the file.
        columns: or leaves of structs.
        group_rows: of a row group at most.
    """
    types = leaf_types(schema) if columns else {}
    size = {"ndv": max(1, min(group_rows, _MOST_VALUES)), "fpp": _FALSE_HITS}
    chosen = [name for name in columns if name in types and not pa.types.is_boolean(types[name])]
    return {"bloom_filter_options": dict.fromkeys(chosen, size)} if chosen else {}


def _plain_bytes(values: pa.Array) -> int:
    if pa.types.is_string(values.type) or pa.types.is_binary(values.type):
        return int(pc.sum(pc.binary_length(values)).as_py() or 0) + 4 * len(values)
    if pa.types.is_decimal(values.type):
        return len(values) * (4 if values.type.precision <= 9 else 8 if values.type.precision <= 18 else 16)
    return int(len(values) * max(4, values.type.bit_width // 8))
