"""Look-up tables of integers as SQL text: each one constant array, parsed once while a query is optimized."""

from __future__ import annotations

from collections.abc import Sequence


def int_table(values: Sequence[int]) -> str:
    """Return a constant SQL array of INT."""
    return _table(values, "INT")


def long_table(values: Sequence[int], *, signed: bool = False) -> str:
    """Return a constant SQL array of BIGINT; ``signed`` takes values from 2^63 for two's complement."""
    return _table([value - (1 << 64) if signed and value >> 63 else value for value in values], "BIGINT")


def _table(values: Sequence[int], sql_type: str) -> str:
    return f"CAST(split('{','.join(map(str, values))}', ',') AS ARRAY<{sql_type}>)"
