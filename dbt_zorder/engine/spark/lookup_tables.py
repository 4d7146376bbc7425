"""Writes look-up tables of integers as SQL text: constant arrays, parsed once while a query is optimized."""

from __future__ import annotations

from collections.abc import Sequence

from dbt_zorder.spark.sql import constant_array


def int_table(values: Sequence[int | None]) -> str:
    """Return a constant SQL array of INT; None becomes NULL, which tasks need not receive as an object."""
    return constant_array(values, "int")


def long_table(values: Sequence[int], *, signed: bool = False) -> str:
    """Return a constant SQL array of BIGINT; ``signed`` converts values from 2^63 to two's complement."""
    return constant_array([value - (1 << 64) if signed and value >> 63 else value for value in values], "bigint")
