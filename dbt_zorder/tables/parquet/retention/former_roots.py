"""List the folders that may contain versions of a table according to a marker, and report the skipped ones."""

from __future__ import annotations

from pyspark.sql import SparkSession

from dbt_zorder.spark.files import list_folders
from dbt_zorder.spark.messages import in_one_line
from dbt_zorder.tables.version import Marker, is_root, roots_of


def listed_roots(spark: SparkSession, location: str, marker: Marker | None) -> tuple[list[str], list[tuple[str, str]]]:
    """Return the folders of ``roots_of`` that can be listed, and the skipped ones with the reason for each.

    Raises:
        Exception: the file system's own error if the version's own folder cannot be listed.
    """
    own, *former = roots_of(location, marker)
    named = marker.former_roots if marker else []
    skipped = [(root, "no folder of versions has such a name") for root in named if not is_root(root)]
    found = [own]
    for root in former:
        try:
            list_folders(spark, root)
        except Exception as exc:  # a deleted bucket, a server that does not answer, or a missing permission
            skipped.append((root, f"cannot be listed: {in_one_line(exc)}"))
        else:
            found.append(root)
    return found, skipped
