"""The box of the column space that a file of a layout holds, as a predicate on the query's own columns."""

from __future__ import annotations

import numpy as np

from dbt_zorder.engine.spark.literals import key_literal
from dbt_zorder.layout.layout import Layout


def box_sql(layout: Layout, file: int) -> str | None:
    """Return SQL text that is true for the rows of a file's cell, and for no others.

    A cell whose rows a hash spreads over several files is the box of each of them.

    Returns:
        None where files are cut along a curve: they are no boxes.
    """
    if layout.curve is not None and layout.curve.cuts_files:
        return None
    node = int(np.searchsorted(layout.first_file, file, side="right")) - 1
    tree = node >> layout.file_levels
    conditions = [f"{layout.partition_hash} = {layout.partition_hashes[tree]}"] if layout.partition_columns else []
    for level in reversed(range(layout.file_levels)):
        right, node = node & 1, node >> 1
        found = layout.cut_of(level, node)
        if found is not None:
            key, cut = found
            above = f"{key.expression} >= {key_literal(cut, key.carrier)}"
            conditions.append(above if right else f"coalesce(NOT ({above}), true)")
    return " AND ".join(conditions) or "true"
