"""The tree of a version, kept in the version's own folder with what it made: batches that come later go through it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from dbt_zorder.layout.file_count import LEAST_SIZE, auto_size, parse_size
from dbt_zorder.layout.layout import Layout
from dbt_zorder.layout.layout_json import layout_from_json, layout_to_json
from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.stats.summary import Summary
from dbt_zorder.tables.parquet.markers import read_line, write_line

TREE_DIRECTORY = "_zorder_tree"


_OUTGROWN = 4
"""A table of so many times the rows that it was built of is to have larger files than it was built into."""


@dataclass(frozen=True)
class Tree:
    """What a version keeps of its build.

    Attributes:
        layout: where its rows went; None if it does not fit the table's columns or is of another format.
        built: its figures when it was written whole.
        by: the clustering columns, by their dotted names.
    """

    layout: Layout | None
    built: Summary
    by: list[str]


def target_bytes(spec: LayoutSpec, tree: Tree | None, table_bytes: int) -> int:
    """Return the size of a file of a table: a number of files means the size that they had when it was last built.

    It is never below the least that can be asked for, which files of a few rows are.
    """
    if spec.files is not None and tree is not None and tree.built.files and tree.built.rows:
        return max(LEAST_SIZE, tree.built.bytes // tree.built.files)
    return (None if spec.files is not None else parse_size(spec.file_size)) or auto_size(table_bytes)


def files_of_batch(spec: LayoutSpec, built: Summary, table_rows: int, rows: int, *, partitioned: bool) -> int | None:
    """Return of how many files a batch is to be that outgrows its table; None if files of the table's size serve.

    With ``zorder_files``, files of a table that was built of a few rows, or of none, are tiny: by them a later backfill
    would be thousands. So such a batch is its share of the files that the table would have if it were built now; one
    that goes into partitions is laid out as a build would lay it out.

    Args:
        spec: of the model.
        built: the table when it was last built.
        table_rows: that it has now.
        rows: of the batch.
        partitioned: the number of files is that of each partition.
    """
    is_known = built.rows > 0 or table_rows == 0
    if spec.files is None or not is_known or rows + table_rows <= _OUTGROWN * built.rows:
        return None
    if partitioned:
        return spec.files if rows > _OUTGROWN * built.rows else None
    return max(1, round(spec.files * rows / max(1, rows + table_rows)))


def write_tree(spark: SparkSession, path: str, layout: Layout, built: Summary) -> None:
    """Write the tree of the version at ``path``."""
    by = [key.column.name for key in layout.keys]
    text = json.dumps({"layout": layout_to_json(layout), "built": asdict(built), "by": by}, allow_nan=False)
    write_line(spark, f"{path.rstrip('/')}/{TREE_DIRECTORY}", text, renew=True)


def read_tree(spark: SparkSession, path: str, schema: StructType) -> Tree | None:
    """Return the tree of the version at ``path``, None if there is none that can be read."""
    try:
        found: Mapping[str, Any] = json.loads(read_line(spark, f"{path.rstrip('/')}/{TREE_DIRECTORY}"))
        return Tree(
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
