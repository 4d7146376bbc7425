"""Read and change the settings of a Spark session, and recognize values that Spark redacts."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from weakref import WeakKeyDictionary

import pyspark.sql.session
from pyspark.sql import SparkSession

from dbt_zorder.spark.jvm import has_jvm
from dbt_zorder.spark.messages import in_one_line

_LOG = logging.getLogger("dbt_zorder")

ESCAPED_LITERALS = "spark.sql.parser.escapedStringLiterals"
"""Setting that makes backslashes in literals literal, so that ``sql.quote_string`` would give another text."""

ANSI = "spark.sql.ansi.enabled"
"""Setting that makes Spark compare and cast as standard SQL does."""

CASE_SENSITIVE = "spark.sql.caseSensitive"
"""Setting that makes names that differ only by case distinct columns, also in files."""

SESSION_ZONE = "spark.sql.session.timeZone"
"""Setting of the time zone; by default the machine's."""

DATETIME_TO_STRING = "spark.sql.legacy.typeCoercion.datetimeToString.enabled"
"""Setting that makes Spark compare a date with a text as texts."""

OPEN_FILES = "spark.sql.maxConcurrentOutputFileWriters"
"""Number of files that a task keeps open to write unsorted partitions; at 0 Spark sorts by partition first."""

IGNORED_FILES = ("spark.sql.files.ignoreCorruptFiles", "spark.sql.files.ignoreMissingFiles")
"""Settings under which Spark leaves out rows of files that it cannot read, in place of an error."""

REDACTED = "(redacted)"
"""Part of the value, after asterisks, that Spark shows for a hidden setting or property."""

_siblings: WeakKeyDictionary[SparkSession, dict[tuple[str, ...], SparkSession]] = WeakKeyDictionary()
"""Further sessions of Spark Connect servers, by the keys of their own settings."""


def is_on(spark: SparkSession, key: str) -> bool:
    """Return whether a setting is on; a setting without a value is off."""
    return str(spark.conf.get(key, "false")).lower() == "true"


def open_files(spark: SparkSession) -> int:
    """Return the number of files that a task keeps open to write unsorted partitions; 0 if Spark sorts first."""
    return max(0, int(spark.conf.get(OPEN_FILES, "0") or 0))


def first_below(spark: SparkSession, prefixes: Iterable[str]) -> str | None:
    """Return the first prefix below which a session in this process has a setting; None if there is none.

    A list of all settings needs 40 ms to transfer: beyond 8 KB, each part waits for the previous one.
    """
    session: Any = spark._jsparkSession
    kept = session.sessionState().newHadoopConf()  # contains all settings under their own names
    return next((prefix for prefix in prefixes if not kept.getPropsWithPrefix(prefix).isEmpty()), None)


@contextlib.contextmanager
def settings(spark: SparkSession, values: Mapping[str, str]) -> Iterator[None]:
    """Set session settings while the block runs, and restore the previous values."""
    before = {key: spark.conf.get(key, None) for key in values}
    for key, value in values.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, old in before.items():
            if old is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, old)


def set_settings(spark: SparkSession) -> dict[str, str]:
    """Return the settings that are set in a session, by key."""
    rows = spark.sql("SET").collect()
    # a list of settings redacts possible secrets, and a redacted value must not be written back
    return {key: str(spark.conf.get(key, value)) if REDACTED in value else value for key, value in rows}


def sibling_session(spark: SparkSession, values: Mapping[str, str]) -> SparkSession | None:
    """Return another session with this one's settings, except for ``values``; None if it cannot be created.

    The two share catalog, cached data and global temporary views, but not temporary views. Over Spark Connect there is
    one such session for each set of keys. The server keeps all sessions that it ever opened.
    """
    try:
        sibling = spark.newSession() if has_jvm(spark) else _remote_sibling(spark, tuple(values))
    except Exception as exc:
        _LOG.debug("there is no other session beside this one: %s", in_one_line(exc))
        return None
    theirs, wanted = set_settings(sibling), {**set_settings(spark), **values}
    for key in {**theirs, **wanted}:
        if theirs.get(key) == wanted.get(key):
            continue
        with contextlib.suppress(Exception):  # a static one is the same in every session
            if key in wanted:
                sibling.conf.set(key, wanted[key])
            else:
                sibling.conf.unset(key)
    sibling.catalog.setCurrentCatalog(spark.catalog.currentCatalog())
    # creating a session redirects rdd.toDF() to it
    patch = getattr(pyspark.sql.session, "_monkey_patch_RDD", None)
    if patch is not None and has_jvm(spark):
        patch(spark)
    return sibling


def _remote_sibling(spark: SparkSession, kind: tuple[str, ...]) -> SparkSession:
    """Return another session of the same Spark Connect server."""
    sessions = _siblings.setdefault(spark, {})
    if kind not in sessions:
        client: Any = getattr(spark, "_client", None)  # private, but there is no newSession
        make: Any = type(spark)
        sessions[kind] = make(connection=client._builder)
    return sessions[kind]


COMMITTERS: Mapping[str, str] = {
    "spark.sql.parquet.output.committer.class": "org.apache.parquet.hadoop.ParquetOutputCommitter",
    "spark.sql.sources.commitProtocolClass": (
        "org.apache.spark.sql.execution.datasources.SQLHadoopMapReduceCommitProtocol"
    ),
}
"""Session settings with the values under which files appear at their final paths; other committers are for stores."""
