"""The user's request for a layout, and its keys, checked before any data is read."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral

from pyspark.sql import DataFrame

from dbt_zorder.errors import ColumnError, ConfigError
from dbt_zorder.layout.curves import check_curve
from dbt_zorder.layout.file_count import parse_size
from dbt_zorder.layout.keys import Key, key_of
from dbt_zorder.spark.columns import case_sensitive, resolve, resolve_all

MOST_COLUMNS = 8
_MOST_COUNT = (1 << 31) - 1
_SEEDS = 1 << 63


@dataclass(frozen=True)
class LayoutSpec:
    """The user's request for a layout.

    Attributes:
        by: columns to cluster by, as the user wrote them, 1 to 8.
        files: exact number of files, for each partition, in place of a size.
        file_size: ``auto``, bytes, or a text like ``64MB``; ignored if ``files`` is given.
        partition_by: partition columns of the table.
        weights: one weight for each column, equal by default.
        seed: seed of the sample.
        row_bytes: bytes of a row on disk, if an earlier version gives them.
        curve: ``zorder``, ``hilbert`` or ``linear``.
        encoding: encoding of the values along a curve, ``rank`` or ``bits``.
        page_rows: limit on the rows of a Parquet page, as an option of the write; None for the session's.
        compression: codec, as an option of the write; None for the session's.
    """

    by: Sequence[str]
    files: int | None = None
    file_size: str | int = "auto"
    partition_by: Sequence[str] = ()
    weights: Sequence[float] | None = None
    seed: int = 0
    row_bytes: float | None = None
    curve: str = "zorder"
    encoding: str = "rank"
    page_rows: int | None = None
    compression: str | None = None


def keys_for(df: DataFrame, spec: LayoutSpec) -> list[Key]:
    """Resolve and check the columns of a request against a query, without reading data.

    Raises:
        ColumnError: a column is not a text, is ambiguous, is named twice, or has a type without order; or it does not
            exist, and the message names the nearest.
        ConfigError: there are no columns or too many, or one of them is a partition column; a number is out of range;
            or the curve or encoding does not exist.
    """
    _check_numbers(spec)
    if not 1 <= len(spec.by) <= MOST_COLUMNS:
        msg = f"Between 1 and {MOST_COLUMNS} columns can be clustered by; given were {len(spec.by)}."
        raise ConfigError(msg)
    for name in (*spec.by, *spec.partition_by):
        if not isinstance(name, str):
            msg = f"A column is named by a text, like 'customer_id'; given was {name!r}."
            raise ColumnError(msg)
    check_curve(spec.curve, spec.encoding, weighted=spec.weights is not None, columns=len(spec.by))
    sensitive = case_sensitive(df.sparkSession)
    columns = resolve_all(spec.by, df.schema, sensitive=sensitive)
    partitions = [resolve(name, df.schema, sensitive=sensitive).name for name in spec.partition_by]
    for column in columns:
        if column.name in partitions:
            msg = f"The column '{column.name}' is a partition column: its files hold one value each, so leave it out."
            raise ConfigError(msg)
    keys = [key_of(column) for column in columns]
    for number, key in enumerate(keys):
        for other in keys[:number]:
            if key.expression == other.expression:
                msg = f"'{other.column.name}' and '{key.column.name}' are ordered by the same values: leave out one."
                raise ColumnError(msg)
    return keys


def is_count(value: object) -> bool:
    """Return whether a value is a whole number, 1 or more."""
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) > 0


def are_weights(value: object, columns: int) -> bool:
    """Return whether a value is a list of positive numbers, one for each column."""
    return (
        isinstance(value, (list, tuple))
        and len(value) == columns
        # a whole number may exceed every float
        and all(isinstance(w, (int, float)) and not isinstance(w, bool) and 0 < w <= sys.float_info.max for w in value)
    )


def _check_numbers(spec: LayoutSpec) -> None:
    for name, value in (("files", spec.files), ("page_rows", spec.page_rows)):
        if value is not None and not (is_count(value) and value <= _MOST_COUNT):
            msg = f"'{name}' must be a positive whole number, up to {_MOST_COUNT:,}; given was {value!r}."
            raise ConfigError(msg)
    if not isinstance(spec.seed, Integral) or not -_SEEDS <= int(spec.seed) < _SEEDS:
        msg = f"'seed' must be a whole number of 64 bits; given was {spec.seed!r}."
        raise ConfigError(msg)
    parse_size(spec.file_size)
    if spec.weights is not None and not are_weights(spec.weights, len(spec.by)):
        msg = f"'weights' must be {len(spec.by)} positive numbers, one a column; given was {spec.weights!r}."
        raise ConfigError(msg)
