"""Writes keys as SQL text: one literal array of cuts, which Spark folds into one constant, or single literals.

The text of an array is a single string, which is parsed once while the query is optimized. A plan with 100,000 cuts
therefore stays one node. Nothing in it depends on the session's time zone or on ANSI mode.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence

import numpy as np

from dbt_zorder.layout.keys import TEXT, KeyValue
from dbt_zorder.spark.sql import constant_array

_LEAST_MICROS = -(2**63) + 1
_SHORT_YEAR = re.compile(r"^-(\d{3})-")
"""Matches NumPy's years of three digits; Spark needs four at least."""


def key_array(values: Sequence[KeyValue | None], carrier: str) -> str:
    """Return a constant SQL array of keys of the SQL type ``carrier``; None becomes NULL."""
    items = [json_text(value, carrier) for value in values]
    if carrier == "binary":
        return constant_array(items, carrier)
    if carrier == "string":
        # cast from bytes, which need not be UTF-8 and need no escapes
        return f"CAST({constant_array(items, 'binary')} AS ARRAY<STRING>)"
    # JSON's NULL, because casting a text that is not a number raises an exception in Spark, which costs twenty times as
    # much as all the rest
    return f"try_cast({constant_array(items, 'string')} AS ARRAY<{carrier}>)"


def key_literal(value: KeyValue, carrier: str) -> str:
    """Return one key as SQL text of the SQL type ``carrier``."""
    if isinstance(value, bytes):
        return f"CAST(X'{value.hex()}' AS {carrier})"
    if carrier == "bigint" and isinstance(value, int) and abs(value) < 1 << 62:  # the lowest BIGINT has no literal
        return f"{value}L"
    return f"try_cast('{_number(value, carrier)}' AS {carrier})"


def json_text(value: KeyValue | None, carrier: str) -> str | None:
    """Return one key in JSON form: a number as text, which is cast and not parsed; text and binary as base64."""
    if value is None:
        return None
    return _base64(value) if carrier in TEXT else _number(value, carrier)


def _base64(value: KeyValue) -> str:
    assert isinstance(value, bytes)
    return base64.b64encode(value).decode("ascii")


def _number(value: KeyValue, carrier: str) -> str:
    """Return one key that is neither text nor binary as text that Spark casts to ``carrier``."""
    if carrier == "timestamp_ntz":
        assert isinstance(value, int)
        # the least integer is NumPy's NaT; its neighbour serves as well, as a cut may merge neighbours
        text = str(np.datetime64(max(value, _LEAST_MICROS), "us"))
        return _SHORT_YEAR.sub(r"-0\1-", text)
    if carrier == "double":
        assert isinstance(value, float)
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(repr(value), repr(value))
    return str(value)
