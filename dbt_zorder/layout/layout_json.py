"""Layouts as JSON, so that rows added to a table later are placed like its first rows.

Cuts are written as their carrier represents them on the driver. Whole numbers stay numbers, decimals become text, and
strings and binaries become base64. Doubles become the shortest text that restores the same bits, including ``nan`` and
``inf``, which JSON lacks.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
from pyspark.sql.types import DataType, StructType

from dbt_zorder.layout.curve import VALUE_BITS, Curve
from dbt_zorder.layout.curves import CURVES, ENCODINGS
from dbt_zorder.layout.hash_index import BUCKET
from dbt_zorder.layout.keys import TEXT, Key, KeyValue, key_of
from dbt_zorder.layout.layout import Layout
from dbt_zorder.layout.runs import Run
from dbt_zorder.spark.columns import ResolvedColumn
from dbt_zorder.spark.sql import quote_name

FORMAT = 2
"""Format number of the JSON. A layout of another format is ignored, and the batch is laid out by itself."""

Json = dict[str, Any]


def layout_to_json(layout: Layout) -> Json:
    """Return a layout as values for ``json.dumps``.

    The details of the layout's own write are left out, as the next write does not need them.
    """
    encode = [_codec(carrier)[0] for carrier in _carriers(layout.curve, layout.keys)]
    return {
        "format": FORMAT,
        "keys": [{"path": list(key.column.path), "key": key.expression, "carrier": key.carrier} for key in layout.keys],
        "levels": [
            {str(number): _convert_each(encode[number], values) for number, values in cuts.items()}
            for cuts in layout.levels
        ],
        "file_levels": layout.file_levels,
        "first_file": layout.first_file.tolist(),
        "file_count": layout.file_count.tolist(),
        "files": layout.files,
        "partition_columns": list(layout.partition_columns),
        "partition_hashes": layout.partition_hashes.tolist(),
        "rows": layout.rows,
        "curve": _curve_to_json(layout.curve, layout.keys),
        "runs": [[run.key, run.unit] for run in layout.runs],
    }


def layout_from_json(found: Mapping[str, Any] | None, schema: StructType) -> Layout | None:
    """Return a saved layout, None if it does not fit a table of this schema or has another format.

    Return None for None, which a version without a layout has.

    Raises:
        KeyError, ValueError, TypeError: the JSON does not come from ``layout_to_json``.
    """
    if found is None or found["format"] != FORMAT:
        return None
    keys: list[Key] = []
    for saved in _list(found["keys"]):
        column = _column(tuple(saved["path"]), schema)
        key = key_of(column) if column is not None else None
        if key is None or (key.expression, key.carrier) != (saved["key"], saved["carrier"]):
            return None
        keys.append(key)
    parts, hashes = _list(found["partition_columns"]), _numbers(found["partition_hashes"])
    if not {*parts} <= {quote_name(name) for name in (*schema.names, BUCKET)}:
        return None
    curve = _curve_from_json(found["curve"], keys)
    decode = [_codec(carrier)[1] for carrier in _carriers(curve, keys)]
    levels = [
        {_number(n, len(decode)): _convert_each(decode[int(n)], _list(values)) for n, values in cuts.items()}
        for cuts in _list(found["levels"])
    ]
    layout = Layout(
        keys=keys,
        levels=levels,
        file_levels=_number(found["file_levels"], len(levels) + 1),
        first_file=np.asarray(_numbers(found["first_file"]), dtype=np.int32),
        file_count=np.asarray(_numbers(found["file_count"]), dtype=np.int32),
        files=_number(found["files"]),
        partition_columns=parts,
        partition_hashes=np.asarray(hashes, dtype=np.int64),
        rows=_number(found["rows"]),
        curve=curve,
        # older versions have no runs
        runs=[Run(_number(key, len(keys)), _number(unit)) for key, unit in _list(found.get("runs", []))],
    )
    _check_shape(layout)
    return layout


def _check_shape(layout: Layout) -> None:
    """Raise ValueError if the numbers of a layout's nodes, cells or files do not fit a forest."""
    nodes = [layout.trees << level for level in range(len(layout.levels))]
    cells = layout.trees << layout.file_levels
    first, count = layout.first_file.astype(np.int64), layout.file_count.astype(np.int64)
    if (
        any(len(values) != size for size, cuts in zip(nodes, layout.levels, strict=True) for values in cuts.values())
        or not len(first) == len(count) == cells
        or count.min() < 0
        or first.min() < 0
        or first.max() > layout.files  # an unreached cell may begin behind the last file
        or layout.files > max(1, int(count.sum()))
    ):
        msg = "the saved layout does not fit itself"
        raise ValueError(msg)


def _carriers(curve: Curve | None, keys: Sequence[Key]) -> list[str]:
    """Return the carrier of the cuts for each number in ``LevelCuts``."""
    if curve is not None and curve.cuts_files and curve.curve != "linear":
        return [curve.carrier]
    return [key.carrier for key in keys]


def _curve_to_json(curve: Curve | None, keys: Sequence[Key]) -> Json | None:
    if curve is None:
        return None
    each = zip(keys, curve.boundaries, strict=False)  # only the encoding ``rank`` has boundaries
    return {
        "curve": curve.curve,
        "encoding": curve.encoding,
        "cuts_files": curve.cuts_files,
        "bits": curve.bits,
        "boundaries": [_convert_each(_codec(key.carrier)[0], values) for key, values in each],
        "codes": [list(map(int, codes)) for codes in curve.codes],
    }


def _curve_from_json(found: Json | None, keys: Sequence[Key]) -> Curve | None:
    if found is None:
        return None
    each = zip(keys, _list(found["boundaries"]), strict=False)
    boundaries = [_convert_each(_codec(key.carrier)[1], _list(values)) for key, values in each]
    if found["curve"] not in CURVES or found["encoding"] not in ENCODINGS or type(found["cuts_files"]) is not bool:
        msg = "the saved curve is none"
        raise ValueError(msg)
    codes = [_numbers(values) for values in _list(found["codes"])]
    bits = _number(found["bits"], VALUE_BITS + 1)
    return Curve(found["curve"], found["encoding"], found["cuts_files"], bits, boundaries, codes)


def _column(path: tuple[str, ...], schema: StructType) -> ResolvedColumn | None:
    """Return the column at ``path``, None if it does not exist."""
    here: DataType = schema
    for part in path:
        if not isinstance(here, StructType) or part not in here.names:
            return None
        here = here[part].dataType
    return ResolvedColumn(path, here)


def _codec(carrier: str) -> tuple[Callable[[Any], Any], Callable[[Any], KeyValue]]:
    """Return the functions that write a carrier's key as JSON and read it back."""
    if carrier in TEXT:
        return lambda value: base64.b64encode(value).decode("ascii"), base64.b64decode
    if carrier.startswith("decimal"):
        return str, Decimal
    if carrier == "double":
        return lambda value: repr(float(value)), float
    return int, int


def _convert_each(convert: Callable[[Any], Any], values: Sequence[Any]) -> list[Any]:
    return [None if value is None else convert(value) for value in values]


def _list(value: Any) -> list[Any]:
    """Return a JSON list; reject anything else, because a text would be read letter by letter."""
    if not isinstance(value, list):
        msg = f"the saved layout has a {type(value).__name__} where a list belongs"
        raise ValueError(msg)
    return value


def _numbers(values: Any) -> list[int]:
    """Return a list of whole numbers; reject anything else, because the numbers become SQL text."""
    if not all(type(value) is int for value in _list(values)):
        msg = "the saved layout has other than whole numbers"
        raise ValueError(msg)
    return list(values)


def _number(value: Any, end: int = 1 << 63) -> int:
    """Return a whole number from 0 to below ``end``; a key of JSON is a text of digits."""
    number: int = int(value) if isinstance(value, str) and value.isascii() and value.isdigit() else value
    if type(number) is not int or not 0 <= number < end:
        msg = f"the saved layout has a number that is not from 0 to {end - 1}"
        raise ValueError(msg)
    return number
