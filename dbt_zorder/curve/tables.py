"""Look-up tables of integers as SQL text: each one constant array, parsed once while a query is optimized."""

from __future__ import annotations

import json
from collections.abc import Sequence


def int_table(values: Sequence[int | None]) -> str:
    """Return a constant SQL array of INT; None becomes NULL, which no task need be sent as an object of its own."""
    # as JSON has it: the cast of a text that is no number costs Spark an exception
    return f"from_json('{json.dumps(list(values), separators=(',', ':'))}', 'array<int>')"


def long_table(values: Sequence[int], *, signed: bool = False) -> str:
    """Return a constant SQL array of BIGINT; ``signed`` takes values from 2^63 for two's complement."""
    numbers = [value - (1 << 64) if signed and value >> 63 else value for value in values]
    return f"CAST(split('{','.join(map(str, numbers))}', ',') AS ARRAY<BIGINT>)"
