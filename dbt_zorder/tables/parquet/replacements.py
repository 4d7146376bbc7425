"""When a version was replaced: a note in its own folder, and the grace period counts from the time of that file."""

from __future__ import annotations

import contextlib
from datetime import datetime

from pyspark.sql import SparkSession

from dbt_zorder.spark.files import delete_path, has_client, read_text, write_text, written_at
from dbt_zorder.tables.version import read_marker

NOTE = "_zorder_replaced"
_UNKNOWN = "-"


def note_replaced(spark: SparkSession, path: str, successor: str = "") -> None:
    """Note that the version at ``path`` is no longer served, from now on.

    Args:
        successor: the version that took its place; empty if that is not known, because a run was killed in between or
            because the version never was served.
    """
    if has_client(spark):
        # without a note the grace period only begins later
        with contextlib.suppress(Exception):
            # a note in a version that a vacuum has just deleted would leave a folder that nothing ever collects
            if read_marker(spark, path) is not None:
                write_text(spark, f"{path}/{NOTE}", successor or _UNKNOWN)


def forget_replaced(spark: SparkSession, path: str) -> None:
    """Take the note away from a version that is to be served again.

    Raises:
        Exception: as the file system does; an old note would make the next grace period too short.
    """
    if has_client(spark):
        delete_path(spark, f"{path}/{NOTE}")


def replaced_at(spark: SparkSession, path: str) -> tuple[datetime | None, bool]:
    """Return when the version at ``path`` was replaced, None if nobody noted it, and whether it surely was served."""
    note = f"{path}/{NOTE}"
    written = written_at(spark, note)
    return (None, False) if written is None else (written, read_text(spark, note) != _UNKNOWN)
