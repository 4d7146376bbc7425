"""Save the layout of a version in the version's own folder, with the figures of its build.

Later batches are clustered by it.
"""

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
    """The saved layout of a version, with the figures of its build.

    Attributes:
        layout: layout of the rows; None if it does not fit the table's columns or has another format.
        built: figures of the version when it was written whole.
        by: dotted names of the clustering columns.
    """

    layout: Layout | None
    built: Summary
    by: list[str]


def write_tree(spark: SparkSession, path: str, layout: Layout, built: Summary) -> None:
    """Write the saved layout of the version at ``path``."""
    by = [key.column.name for key in layout.keys]
    text = json.dumps({"layout": layout_to_json(layout), "built": asdict(built), "by": by}, allow_nan=False)
    write_line(spark, f"{path.rstrip('/')}/{TREE_DIRECTORY}", text, renew=True)


def read_tree(spark: SparkSession, path: str, schema: StructType) -> SavedLayout | None:
    """Return the saved layout of the version at ``path``; None if there is no readable one."""
    try:
        found: Mapping[str, Any] = json.loads(read_line(spark, f"{path.rstrip('/')}/{TREE_DIRECTORY}"))
        return SavedLayout(
            layout_from_json(found["layout"], schema), _figures(found["built"]), [str(one) for one in found["by"]]
        )
    except Exception:  # after any error the batch is laid out on its own
        return None


def _figures(found: Mapping[str, Any]) -> Summary:
    """Parse the figures of a build.

    Raises:
        ValueError, KeyError: they are invalid or incomplete.
    """
    files, rows, size, means = (found[name] for name in ("files", "rows", "bytes", "point_query_files"))
    if not all(type(one) is int and one >= 0 for one in (files, rows, size)) or not isinstance(means, dict):
        msg = "the figures of a build are whole numbers"
        raise ValueError(msg)
    return Summary(files, rows, size, {str(name): float(mean) for name, mean in means.items()})
