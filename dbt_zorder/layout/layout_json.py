"""A layout as JSON and back, so that what is added to a table later goes the way that its first rows went.

Cuts are written in the form that their carrier has on the driver: whole numbers as such, doubles as the shortest text
that gives the same bits again (with ``nan`` and ``inf``, which JSON lacks), decimals as text, strings and binaries as
base64.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
from pyspark.sql.types import DataType, StructType

from dbt_zorder.layout.curve import CurveKey
from dbt_zorder.layout.keys import TEXT, Key, KeyValue, key_of
from dbt_zorder.layout.layout import Layout
from dbt_zorder.layout.runs import Run
from dbt_zorder.spark.columns import ResolvedColumn

FORMAT = 2
"""Of the JSON; a layout of another format is not read, and the batch is laid out by itself."""

Json = dict[str, Any]


def layout_to_json(layout: Layout) -> Json:
    """Return a layout as what ``json.dumps`` takes; how its own write went, means nothing to the next."""
    encode = [_codec(carrier)[0] for carrier in _carriers(layout.curve, layout.keys)]
    return {
        "format": FORMAT,
        "keys": [{"path": list(key.column.path), "key": key.expression, "carrier": key.carrier} for key in layout.keys],
        "levels": [
            {str(number): _each(encode[number], values) for number, values in cuts.items()} for cuts in layout.levels
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
    """Return the layout that was saved, None if it does not fit a table of this schema or is of another format.

    None stays None: a version that has none.

    Raises:
        KeyError, ValueError, TypeError: it was not written by ``layout_to_json``.
    """
    if found is None or found["format"] != FORMAT:
        return None
    keys: list[Key] = []
    for saved in found["keys"]:
        column = _column(tuple(saved["path"]), schema)
        key = key_of(column) if column is not None else None
        if key is None or (key.expression, key.carrier) != (saved["key"], saved["carrier"]):
            return None
        keys.append(key)
    curve = _curve_from_json(found["curve"], keys)
    decode = [_codec(carrier)[1] for carrier in _carriers(curve, keys)]
    return Layout(
        keys=keys,
        levels=[{int(n): _each(decode[int(n)], values) for n, values in cuts.items()} for cuts in found["levels"]],
        file_levels=found["file_levels"],
        first_file=np.asarray(found["first_file"], dtype=np.int32),
        file_count=np.asarray(found["file_count"], dtype=np.int32),
        files=found["files"],
        partition_columns=found["partition_columns"],
        partition_hashes=np.asarray(found["partition_hashes"], dtype=np.int64),
        rows=found["rows"],
        curve=curve,
        runs=[Run(*run) for run in found.get("runs", ())],  # versions of before have none
    )


def _carriers(curve: CurveKey | None, keys: Sequence[Key]) -> list[str]:
    """Return the carrier of the cuts of each number that ``LevelCuts`` has."""
    if curve is not None and curve.cuts_files and curve.curve != "linear":
        return [curve.carrier]
    return [key.carrier for key in keys]


def _curve_to_json(curve: CurveKey | None, keys: Sequence[Key]) -> Json | None:
    if curve is None:
        return None
    each = zip(keys, curve.boundaries, strict=False)  # only the encoding by ranks has boundaries
    return {
        "curve": curve.curve,
        "encoding": curve.encoding,
        "cuts_files": curve.cuts_files,
        "bits": curve.bits,
        "boundaries": [_each(_codec(key.carrier)[0], values) for key, values in each],
        "codes": [list(map(int, codes)) for codes in curve.codes],
    }


def _curve_from_json(found: Json | None, keys: Sequence[Key]) -> CurveKey | None:
    if found is None:
        return None
    each = zip(keys, found["boundaries"], strict=False)
    boundaries = [_each(_codec(key.carrier)[1], values) for key, values in each]
    return CurveKey(**{**found, "boundaries": boundaries})


def _column(path: tuple[str, ...], schema: StructType) -> ResolvedColumn | None:
    """Return the column at ``path``, None if there is none."""
    here: DataType = schema
    for part in path:
        if not isinstance(here, StructType) or part not in here.names:
            return None
        here = here[part].dataType
    return ResolvedColumn(path, here)


def _codec(carrier: str) -> tuple[Callable[[Any], Any], Callable[[Any], KeyValue]]:
    """Return how a key of a carrier is written as JSON, and how it is read."""
    if carrier in TEXT:
        return lambda value: base64.b64encode(value).decode("ascii"), base64.b64decode
    if carrier.startswith("decimal"):
        return str, Decimal
    if carrier == "double":
        return lambda value: repr(float(value)), float
    return int, int


def _each(convert: Callable[[Any], Any], values: Sequence[Any]) -> list[Any]:
    return [None if value is None else convert(value) for value in values]
