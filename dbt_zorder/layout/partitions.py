"""Folders of partitions, and the values in their names."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote, unquote

from pyspark.sql import SparkSession

from dbt_zorder.spark.jvm import class_named

NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"
"""Spark's folder name for NULL."""

_LONGEST = 255
"""Limit on the bytes of a folder's name on the disks of most machines."""


class NamelessError(Exception):
    """A partition whose folder has no name that this process, the JVM and the table all understand."""


def null_if_unnamed(sql: str) -> str:
    """Return SQL text of a partition value as its folder's name is read back.

    An empty text has no folder name of its own, and ``NULL_PARTITION`` is the name for NULL. Both are read back as
    NULL.
    """
    return f"nullif(nullif({sql}, ''), '{NULL_PARTITION}')"


def folder_names(
    spark: SparkSession, columns: Sequence[str], partitions: Sequence[tuple[str | None, ...]], *, whole: bool = False
) -> list[str]:
    """Return the folders of partitions.

    Args:
        spark: the session.
        columns: names of the partition columns.
        partitions: values of each partition as text.
        whole: whether the table stores the values elsewhere. The names are then in ASCII, and every value has its own
            folder. Otherwise names are as Spark writes them, and an empty text is NULL.

    Raises:
        NamelessError: a folder has no name here.
        Exception: a text is not UTF-8.
    """
    if whole:
        return [
            "/".join(_kept_apart(name, value) for name, value in zip(columns, one, strict=True)) for one in partitions
        ]
    named = class_named(spark._jvm, "org.apache.spark.sql.catalyst.catalog.ExternalCatalogUtils").getPartitionPathString
    found = ["/".join(named(name, value) for name, value in zip(columns, one, strict=True)) for one in partitions]
    if not all(map(str.isascii, found)) and not _is_unicode(spark):
        msg = "names of folders are not in ASCII, and the JVM spells them otherwise than this process"
        raise NamelessError(msg)
    return found


def values_of(folders: str) -> list[str | None]:
    """Return the values of a partition as text, from the name of its folder; none for an empty name."""
    texts = [folder.partition("=")[2] for folder in folders.split("/") if folder]
    return [None if text == NULL_PARTITION else unquote(text) for text in texts]


def _kept_apart(column: str, value: str | None) -> str:
    if value == NULL_PARTITION:  # the formats read it as NULL
        msg = f"a text is {NULL_PARTITION}"
        raise NamelessError(msg)
    name = f"{quote(column, safe='*')}={NULL_PARTITION if value is None else quote(value, safe='*')}"
    if len(name) > _LONGEST:
        msg = f"a value of {column} is too long for the name of a folder"
        raise NamelessError(msg)
    return name


def _is_unicode(spark: SparkSession) -> bool:
    """Return whether the JVM spells file names as Python does, whatever the locale."""
    return str(class_named(spark._jvm, "java.lang.System").getProperty("sun.jnu.encoding")).upper().startswith("UTF")


def partition_hash(columns: Sequence[str]) -> str:
    """Return SQL text of the 64-bit hash of partition columns, which are SQL text themselves."""
    # Spark's hash skips NULL, so with two columns it would not distinguish which one is NULL
    parts = columns if len(columns) == 1 else [part for name in columns for part in (name, f"{name} IS NULL")]
    return f"xxhash64({', '.join(parts)})"
