"""How long rows are before they are encoded: text and lists as long as they are, NULL as nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as t

from dbt_zorder.engine.local.place import Placing
from dbt_zorder.engine.local.row_estimate import inner_types
from dbt_zorder.layout.keys import TEXT
from dbt_zorder.layout.layout import Layout
from dbt_zorder.spark.arrow import one_chunk
from dbt_zorder.spark.sql import quote_name

_FIXED = 8
"""Bytes that a number is taken for in SQL, and an element of a list."""


def row_lengths(rows: pa.Table) -> npt.NDArray[np.float64]:
    """Return the bytes of each row."""
    found = np.zeros(rows.num_rows)
    for column in rows.columns:
        found += _lengths(one_chunk(column))
    return found


def _lengths(values: Any) -> npt.NDArray[np.float64]:
    kind = values.type
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return _filled(pc.binary_length(values))
    if pa.types.is_struct(kind):
        found = sum((_lengths(one) for one in values.flatten()), np.zeros(len(values)))
    elif pa.types.is_map(kind) or pa.types.is_list(kind):
        # as they are in memory: where a list is NULL, or the array a slice, some elements belong to no list
        inner = [values.values] if pa.types.is_list(kind) else [values.keys, values.items]
        ends = np.concatenate([np.zeros(1), np.cumsum(sum(map(_lengths, inner)))])
        offsets = values.offsets.to_numpy()
        found = ends[offsets[1:]] - ends[offsets[:-1]]
    else:
        found = np.full(len(values), _width(kind))
    return np.where(_filled(values.is_valid()) > 0, found, 0.0)


def _width(kind: pa.DataType) -> float:
    try:
        return float(kind.bit_width) / 8
    except ValueError:  # a type of varying width that Spark's have no counterpart of
        return float(_FIXED)


def _filled(numbers: Any) -> npt.NDArray[np.float64]:
    return np.asarray(pc.fill_null(numbers.cast(pa.float64()), 0.0).to_numpy(zero_copy_only=False))


def lengths_of_files(layout: Layout, keys: pa.Table, lengths: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return by file the mean length of some rows; NaN where there are none.

    Args:
        layout: of the files.
        keys: of the rows, as of ``FetchedKeys``.
        lengths: of each row.
    """
    placing = Placing.by(layout)
    order, files = placing.share_out(placing.cells(keys))
    return means(files, lengths[order], layout.files, np.nan)


def means(
    numbers: npt.NDArray[Any], values: npt.NDArray[np.float64], count: int, otherwise: float
) -> npt.NDArray[np.float64]:
    """Return the mean of the values of each number below ``count``, and ``otherwise`` for those without any."""
    rows = np.bincount(numbers, minlength=count)
    total = np.bincount(numbers, weights=values, minlength=count)
    return np.where(rows > 0, total / np.maximum(1, rows), otherwise)


def length_sql(schema: t.StructType) -> str:
    """Return SQL text of the bytes of a row, of texts within lists by a guess."""
    return _sum([_sql(quote_name(field.name), field.dataType) for field in schema.fields])


def _sum(terms: Sequence[str]) -> str:
    """Return SQL text of a sum that is no deeper than it has to be: Spark's parser goes down in it."""
    if len(terms) < 2:
        return terms[0] if terms else "0L"
    half = len(terms) // 2
    return f"({_sum(terms[:half])} + {_sum(terms[half:])})"


def _sql(value: str, data_type: t.DataType) -> str:
    if isinstance(data_type, t.StructType):
        return _sum([_sql(f"{value}.{quote_name(field.name)}", field.dataType) for field in data_type.fields])
    if data_type.simpleString() in TEXT:
        return f"coalesce(octet_length({value}), 0)"
    if isinstance(data_type, (t.ArrayType, t.MapType)):
        return f"greatest(coalesce(size({value}), 0), 0) * {_FIXED * len(inner_types(data_type))}"
    return f"IF({value} IS NULL, 0, {_FIXED})"
