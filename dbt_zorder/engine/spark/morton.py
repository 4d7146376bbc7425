"""Computes Morton's curve in SQL: interleaves the bits of several integers (see ``curve.morton``)."""

from __future__ import annotations

from collections.abc import Sequence

from dbt_zorder.curve.morton import _BYTE, spread
from dbt_zorder.engine.spark.lookup_tables import long_table


def words_sql(values: Sequence[str], bits: int) -> list[str]:
    """Return SQL text of the words of a BINARY key: one BIGINT per eight levels, from the top.

    Args:
        values: SQL text of the BIGINT of each column; its low ``bits`` are the value.
        bits: multiple of eight, at most 64.
    """
    columns = len(values)
    tables = [
        long_table([spread(byte, column, columns) for byte in range(1 << _BYTE)], signed=True)
        for column in range(columns)
    ]
    words = []
    for down in range(bits - _BYTE, -1, -_BYTE):
        parts = [
            f"get({table}, CAST(shiftrightunsigned({value}, {down}) & 255 AS INT))"
            for table, value in zip(tables, values, strict=True)
        ]
        words.append(f"({' | '.join(parts)})")
    return words


def bytes_sql(words: Sequence[str], columns: int) -> str:
    """Return SQL text of the BINARY of words with 8 x ``columns`` bits each."""
    # a BIGINT cannot be cast to BINARY in ANSI mode
    texts = [f"lpad(hex({word}), {2 * columns}, '0')" for word in words]
    return f"unhex(concat({', '.join(texts)}))"
