"""Record that the deletion of a version has begun, by a tombstone in its folder that is deleted last.

A deletion writes the tombstone, and then checks whether the version is served. A run that serves a version swaps it in,
and then checks for a tombstone. One of the two therefore always detects the other, without a lock.
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
    """Write a tombstone into the version at ``path`` before its deletion; return the tombstone's path.

    The tombstone contains the marker, so that the rest of an interrupted deletion can still be identified. Each
    deletion has its own tombstone, and removes no other.
    """
    stone = f"{path}/{TOMBSTONE}/{secrets.token_hex(8)}.txt"
    marker = read_marker(spark, path, dying=True)
    if marker is not None:
        write_text(spark, stone, json.dumps(asdict(marker)))
    return stone


def take_away(spark: SparkSession, stone: str) -> None:
    """Delete a tombstone, because the version is served and stays."""
    delete_path(spark, stone)
    with contextlib.suppress(Exception):  # another deletion has its own tombstone there
        delete_empty(spark, stone.rpartition("/")[0])


def deletion_began(spark: SparkSession, path: str) -> datetime | None:
    """Return when the deletion of the version at ``path`` began; None if it has not.

    The time is that of a file: object stores have no folders, and report the current time for them.
    """
    folder = f"{path}/{TOMBSTONE}"
    times = [written_at(spark, f"{folder}/{name}") for name in list_files(spark, folder)]
    return min((time for time in times if time is not None), default=None)


def is_dying(spark: SparkSession, path: str) -> bool:
    """Return whether a deletion of the version at ``path`` has begun."""
    folder = f"{path}/{TOMBSTONE}"
    if has_client(spark):
        return bool(list_files(spark, folder))
    try:
        return bool(read_line(spark, folder))
    except Exception:  # the folder does not exist
        return False
