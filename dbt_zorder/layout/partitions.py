"""The folders that rows of a partition lie in, and what their names tell."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote, unquote

from pyspark.sql import SparkSession

from dbt_zorder.spark.jvm import class_named

NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"
"""Spark's name for the folder of NULL."""

_LONGEST = 255
"""Bytes of a folder's name, on the disks of most machines."""


class NamelessError(Exception):
    """A partition has no folder whose name this process, the JVM and the table all understand."""


def null_if_unnamed(sql: str) -> str:
    """Return SQL text of a text that parts a table as the name of its folder is read back: none for the empty one."""
    return f"nullif(nullif({sql}, ''), '{NULL_PARTITION}')"


def folder_names(
    spark: SparkSession, columns: Sequence[str], partitions: Sequence[tuple[str | None, ...]], *, whole: bool = False
) -> list[str]:
    """Return the folders of some partitions.

    Args:
        spark: the session.
        columns: names of those that part the table.
        partitions: their values as text.
        whole: the values are kept elsewhere, so that all of them are told apart, and the names are of ASCII alone; else
            they are as Spark names them, and an empty text is NULL.

    Raises:
        NamelessError: a folder has no name here.
        Exception: a text is not of UTF-8.
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
    """Return the values of a partition as text by the name of its folder, empty for an empty name."""
    texts = [folder.partition("=")[2] for folder in folders.split("/") if folder]
    return [None if text == NULL_PARTITION else unquote(text) for text in texts]


def _kept_apart(column: str, value: str | None) -> str:
    if value == NULL_PARTITION:  # which formats take for NULL
        msg = f"a text is {NULL_PARTITION}"
        raise NamelessError(msg)
    name = f"{quote(column, safe='*')}={NULL_PARTITION if value is None else quote(value, safe='*')}"
    if len(name) > _LONGEST:
        msg = f"a value of {column} is too long for the name of a folder"
        raise NamelessError(msg)
    return name


def _is_unicode(spark: SparkSession) -> bool:
    """Tell whether the JVM spells names of files as Python does, whatever the locale."""
    return str(class_named(spark._jvm, "java.lang.System").getProperty("sun.jnu.encoding")).upper().startswith("UTF")


def partition_hash(columns: Sequence[str]) -> str:
    """Return SQL text of the 64-bit hash of some partition columns, SQL text themselves."""
    # Spark's hash passes NULL over, so that of two columns it would not tell which one is NULL
    parts = columns if len(columns) == 1 else [part for name in columns for part in (name, f"{name} IS NULL")]
    return f"xxhash64({', '.join(parts)})"
