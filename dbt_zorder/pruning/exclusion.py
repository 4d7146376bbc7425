"""The filter on ``_metadata`` by which Spark leaves files out before it opens them."""

from __future__ import annotations

from collections.abc import Sequence

from dbt_zorder.sql import quote_string

KEY = "concat(_metadata.file_path, '|', _metadata.file_size)"
"""A file is known by path and size: one that was replaced under its old name is read. Sizes hold no ``|``."""


def exclusion_sql(excluded: Sequence[tuple[str, int]]) -> str | None:
    """Return SQL that is TRUE for all files but the excluded ones, or None if there is nothing to exclude."""
    if not excluded:
        return None
    keys = ", ".join(quote_string(f"{path}|{size}") for path, size in excluded)
    return f"NOT coalesce({KEY} IN ({keys}), false)"
