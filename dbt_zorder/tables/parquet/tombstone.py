"""A deletion of a version that has begun: a tombstone in its folder, which goes after all else that is there.

Whoever deletes writes it, and then asks whether the version is served; whoever serves a version swaps it in, and then
looks for a tombstone. So one of the two always sees the other, though between them there is no lock.
"""

from __future__ import annotations

import contextlib
import json
import secrets
from dataclasses import asdict
from datetime import datetime

from pyspark.sql import SparkSession

from dbt_zorder.spark.files import delete_empty, delete_path, has_client, list_files, write_text, written_at
from dbt_zorder.tables.markers import read_line
from dbt_zorder.tables.version import TOMBSTONE, read_marker


def raise_tombstone(spark: SparkSession, path: str) -> str:
    """Say in the version at ``path`` that it is about to be deleted; return the tombstone's own path.

    It tells what the marker does, so that what a deletion leaves that is cut short after the marker is still known to
    be ours. Each deletion has one of its own, and takes none away but that.
    """
    stone = f"{path}/{TOMBSTONE}/{secrets.token_hex(8)}.txt"
    marker = read_marker(spark, path, dying=True)
    if marker is not None:
        write_text(spark, stone, json.dumps(asdict(marker)))
    return stone


def take_away(spark: SparkSession, stone: str) -> None:
    """Take away a tombstone, because the version is served and stays."""
    delete_path(spark, stone)
    with contextlib.suppress(Exception):  # another deletion has its own there
        delete_empty(spark, stone.rpartition("/")[0])


def deletion_began(spark: SparkSession, path: str) -> datetime | None:
    """Return when the deletion of the version at ``path`` began, None if none has.

    It is the time of a file: object stores have no folders, and give each the time of now.
    """
    folder = f"{path}/{TOMBSTONE}"
    times = [written_at(spark, f"{folder}/{name}") for name in list_files(spark, folder)]
    return min((time for time in times if time is not None), default=None)


def is_dying(spark: SparkSession, path: str) -> bool:
    """Tell whether a deletion of the version at ``path`` has begun."""
    folder = f"{path}/{TOMBSTONE}"
    if has_client(spark):
        return bool(list_files(spark, folder))
    try:
        return bool(read_line(spark, folder))
    except Exception:  # there is no such folder
        return False
