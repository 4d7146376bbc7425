"""Note in a version's folder when the version was replaced.

The grace period starts at the modification time of that file.
"""

from __future__ import annotations

import contextlib
from datetime import datetime

from pyspark.sql import SparkSession

from dbt_zorder.spark.files import delete_path, has_client, read_text, write_text, written_at
from dbt_zorder.tables.version import read_marker

NOTE = "_zorder_replaced"
_UNKNOWN = "-"


def note_replaced(spark: SparkSession, path: str, successor: str = "") -> None:
    """Note that the version at ``path`` is no longer served from now on.

    Args:
        spark: the session.
        path: folder of the version.
        successor: version that replaced it; empty if that is unclear, because a run was killed in between or because
            the version was never served.
    """
    if has_client(spark):
        # without a note the grace period only begins later
        with contextlib.suppress(Exception):
            # a note written after a vacuum deleted the version would leave a folder that nothing ever collects
            if read_marker(spark, path) is not None:
                write_text(spark, f"{path}/{NOTE}", successor or _UNKNOWN)


def forget_replaced(spark: SparkSession, path: str) -> None:
    """Delete the note of a version before it is served again.

    Raises:
        Exception: the file system's own error; an old note would make the next grace period too short.
    """
    if has_client(spark):
        delete_path(spark, f"{path}/{NOTE}")


def replaced_at(spark: SparkSession, path: str) -> tuple[datetime | None, bool]:
    """Return when the version at ``path`` was replaced, and whether it certainly was served.

    The time is None if nobody noted the replacement.
    """
    note = f"{path}/{NOTE}"
    written = written_at(spark, note)
    return (None, False) if written is None else (written, read_text(spark, note) != _UNKNOWN)
