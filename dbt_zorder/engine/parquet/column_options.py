"""Chooses the options of Arrow's writer for each column, so that a file serves its readers as parquet-java's would."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dbt_zorder.engine.parquet.leaves import leaf_types, leaves_of
from dbt_zorder.spark.arrow import one_chunk

_PAGE_BYTES, _BATCH_ROWS = 1 << 20, 1024
"""Maximum bytes of a page, as in Spark's files, and Arrow's default number of rows between checks of that size."""
_INDEX_BITS = 8
_FALSE_HITS = 0.01
"""Rate of absent values that pass a bloom filter: parquet-java's default."""
_MOST_VALUES = 860_000
"""Number of values at which a bloom filter reaches one megabyte, ``parquet.bloom.filter.max.bytes``."""


@dataclass(frozen=True)
class Traits:
    """The traits of a file's columns that Arrow needs before the first row.

    Attributes:
        repeating: leaves of columns that are written with a dictionary, see ``leaves_of``.
        bounded: leaves whose min_value and max_value serve every reader.
        batch_rows: number of rows between Arrow's checks of the page size.
        group_rows: maximum rows of a row group.
    """

    repeating: Sequence[str]
    bounded: Sequence[str]
    batch_rows: int
    group_rows: int

    @classmethod
    def of(cls, rows: pa.Table, page_rows: int, group_rows: int) -> Traits:
        """Return the traits of rows that are written in row groups of ``group_rows``."""
        widest = max((int(column.nbytes) for column in rows.columns), default=0) // max(1, rows.num_rows)
        floats = rows.select(float_columns(rows.schema))
        negative = _with_negative_zero(floats)
        groups = (floats[start : start + group_rows] for start in range(0, rows.num_rows, group_rows))
        unbounded = set().union(*map(_unbounded, groups))
        first = dict(leaves_of(rows[:page_rows]))
        return cls(
            # a page of arrays has fewer rows
            repeating=[path for path, page in first.items() if path not in negative and _repeats(page[:page_rows])],
            bounded=[path for path in first if path not in unbounded],
            batch_rows=_batch_rows(widest),
            group_rows=group_rows,
        )

    def with_row_group(self, floats: pa.Table, rows: int, row_bytes: int) -> Traits:
        """Return the traits of a file with one more row group.

        Args:
            floats: columns of the row group that ``float_columns`` names.
            rows: number of its rows.
            row_bytes: bytes of one of its rows.
        """
        negative, unbounded = _with_negative_zero(floats), _unbounded(floats)
        return Traits(
            [path for path in self.repeating if path not in negative],
            [path for path in self.bounded if path not in unbounded],
            min(self.batch_rows, _batch_rows(row_bytes)),
            max(self.group_rows, rows),
        )


def float_columns(schema: pa.Schema) -> list[str]:
    """Return the columns whose traits may differ between row groups: those with floating-point leaves."""
    empty = schema.empty_table()
    return [
        name
        for name in schema.names
        if any(pa.types.is_floating(values.type) for _, values in leaves_of(empty.select([name])))
    ]


def _with_negative_zero(floats: pa.Table) -> set[str]:
    """Return the leaves that contain -0.0.

    For the predicate 0.0, parquet-java skips a row group whose dictionary has only -0.0. Spark therefore loses such
    rows in files of its own writer. It finds them in these files, as such leaves get no dictionary.
    """
    return {path for path, values in leaves_of(floats) if _has_negative_zero(values)}


def _has_negative_zero(values: pa.ChunkedArray) -> bool:
    if not pa.types.is_floating(values.type):
        return False
    zeros = values.filter(pc.equal(values, pa.scalar(0, values.type))).to_numpy()
    return bool(np.signbit(zeros).any())


def _repeats(page: pa.ChunkedArray) -> bool:
    """Return whether a dictionary saves bytes on a column's first page, which is how parquet-java decides."""
    values = one_chunk(page).drop_null()
    if pa.types.is_boolean(values.type) or not len(values):
        return False
    distinct = values.unique()
    bits = max(1, (len(distinct) - 1).bit_length())
    return _plain_bytes(distinct) + len(values) * bits / _INDEX_BITS < _plain_bytes(values)


def _batch_rows(widest: int) -> int:
    """Return the number of rows between Arrow's checks of the page size; pages of long text would become far too large.

    Args:
        widest: bytes of a value of the widest column.
    """
    return int(max(1, min(_BATCH_ROWS, _PAGE_BYTES // max(1, widest))))


def _unbounded(floats: pa.Table) -> set[str]:
    """Return the leaves of a row group whose min_value and max_value from Arrow do not serve every reader.

    Arrow's bounds exclude NaN, which Spark sorts above all numbers: a filter for NaN would find nothing. Such a column
    gets no bounds, as with parquet-java. Nor does a column with only zeros in a row group. Its bounds are -0.0 and 0.0,
    as the specification requires; PyArrow concludes that all values are -0.0, and ``isin`` finds no 0.0.
    """
    return {path for path, values in leaves_of(floats) if pa.types.is_floating(values.type) and _mislead(values)}


def _mislead(values: pa.ChunkedArray) -> bool:
    return bool(pc.any(pc.is_nan(values)).as_py()) or pc.max(pc.abs(values)).as_py() == 0


def bloom_filters(schema: pa.Schema, columns: Collection[str], group_rows: int) -> dict[str, Any]:
    """Return Arrow's options for the bloom filters of the given columns; Arrow shrinks each filter to its values.

    Booleans have none, as bounds say as much. Partition columns are in no file.

    Args:
        schema: schema of the file.
        columns: names of columns, or of leaves of structs.
        group_rows: maximum rows of a row group.
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
