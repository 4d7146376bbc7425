"""The tree of a version, kept in the version's own folder with what it made: batches that come later go through it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from dbt_zorder.layout.layout import Layout
from dbt_zorder.layout.layout_json import layout_from_json, layout_to_json
from dbt_zorder.stats.summary import Summary
from dbt_zorder.tables.markers import read_line, write_line

TREE_DIRECTORY = "_zorder_tree"


@dataclass(frozen=True)
class SavedLayout:
    """What a version keeps of its build.

    Attributes:
        layout: where its rows went; None if it does not fit the table's columns or is of another format.
        built: its figures when it was written whole.
        by: the clustering columns, by their dotted names.
    """

    layout: Layout | None
    built: Summary
    by: list[str]


def write_tree(spark: SparkSession, path: str, layout: Layout, built: Summary) -> None:
    """Write the tree of the version at ``path``."""
    by = [key.column.name for key in layout.keys]
    text = json.dumps({"layout": layout_to_json(layout), "built": asdict(built), "by": by}, allow_nan=False)
    write_line(spark, f"{path.rstrip('/')}/{TREE_DIRECTORY}", text, renew=True)


def read_tree(spark: SparkSession, path: str, schema: StructType) -> SavedLayout | None:
    """Return the tree of the version at ``path``, None if there is none that can be read."""
    try:
        found: Mapping[str, Any] = json.loads(read_line(spark, f"{path.rstrip('/')}/{TREE_DIRECTORY}"))
        return SavedLayout(
            layout_from_json(found["layout"], schema), _figures(found["built"]), [str(one) for one in found["by"]]
        )
    except Exception:  # whatever is wrong with it: the batch is laid out by itself
        return None


def _figures(found: Mapping[str, Any]) -> Summary:
    """Return the figures of a build; ValueError or KeyError if they are none."""
    files, rows, size, means = (found[name] for name in ("files", "rows", "bytes", "point_query_files"))
    if not all(type(one) is int and one >= 0 for one in (files, rows, size)) or not isinstance(means, dict):
        msg = "the figures of a build are whole numbers"
        raise ValueError(msg)
    return Summary(files, rows, size, {str(name): float(mean) for name, mean in means.items()})
