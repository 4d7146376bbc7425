"""Settings of a Spark session: on or off, for a while, and what Spark shows of one that may be a secret."""

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
"""With it backslashes in literals are themselves, so what ``sql.quote_string`` writes means something else."""

ANSI = "spark.sql.ansi.enabled"
"""With it Spark compares and casts as standard SQL does."""

CASE_SENSITIVE = "spark.sql.caseSensitive"
"""With it names that differ by case alone are those of different columns, also in files."""

SESSION_ZONE = "spark.sql.session.timeZone"
"""By default the zone of the machine."""

DATETIME_TO_STRING = "spark.sql.legacy.typeCoercion.datetimeToString.enabled"
"""With it a date that is compared with a text is compared as a text."""

OPEN_FILES = "spark.sql.maxConcurrentOutputFileWriters"
"""How many files a task keeps open that writes partitions as they come; at 0 Spark sorts by them first."""

REDACTED = "(redacted)"
"""Stands in the value of a setting or a property that Spark hides, behind asterisks."""

_asides: WeakKeyDictionary[SparkSession, dict[tuple[str, ...], SparkSession]] = WeakKeyDictionary()
"""Further sessions of Spark Connect servers, by the settings that they have of their own."""


def is_on(spark: SparkSession, key: str) -> bool:
    """Tell whether a setting is on; one that is not set is off."""
    return str(spark.conf.get(key, "false")).lower() == "true"


def open_files(spark: SparkSession) -> int:
    """Return how many files a task keeps open that writes partitions as they come, 0 if Spark sorts by them first."""
    return max(0, int(spark.conf.get(OPEN_FILES, "0") or 0))


def first_below(spark: SparkSession, prefixes: Iterable[str]) -> str | None:
    """Return the first of some prefixes below which a setting is set in a session in this process, None if none has.

    A list of all settings takes 40 ms on its way: of more than 8 KB, each part waits until the one before has come.
    """
    session: Any = spark._jsparkSession
    kept = session.sessionState().newHadoopConf()  # which has all of them, by the names that they have
    return next((prefix for prefix in prefixes if not kept.getPropsWithPrefix(prefix).isEmpty()), None)


@contextlib.contextmanager
def settings(spark: SparkSession, values: Mapping[str, str]) -> Iterator[None]:
    """Set session settings while the block runs, and put back what was there."""
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
    # a list of settings hides what may be a secret, and a hidden one must not be put back as such
    return {key: str(spark.conf.get(key, value)) if REDACTED in value else value for key, value in rows}


def session_aside(spark: SparkSession, values: Mapping[str, str]) -> SparkSession | None:
    """Return a session that has this one's settings but for those that are given; None where there cannot be one.

    The two share catalog, cached data and global temporary views, not temporary ones. Over Spark Connect there is one
    for each session and kind of settings, as the server keeps all that it ever gave.
    """
    try:
        aside = spark.newSession() if has_jvm(spark) else _remote_aside(spark, tuple(values))
    except Exception as exc:
        _LOG.debug("there is no other session beside this one: %s", in_one_line(exc))
        return None
    theirs, wanted = set_settings(aside), {**set_settings(spark), **values}
    for key in {**theirs, **wanted}:
        if theirs.get(key) == wanted.get(key):
            continue
        with contextlib.suppress(Exception):  # a static one is the same in every session
            if key in wanted:
                aside.conf.set(key, wanted[key])
            else:
                aside.conf.unset(key)
    aside.catalog.setCurrentCatalog(spark.catalog.currentCatalog())
    # a new session makes itself the one that rdd.toDF() uses
    patch = getattr(pyspark.sql.session, "_monkey_patch_RDD", None)
    if patch is not None and has_jvm(spark):
        patch(spark)
    return aside


def _remote_aside(spark: SparkSession, kind: tuple[str, ...]) -> SparkSession:
    """Return another session of the same Spark Connect server."""
    known = _asides.setdefault(spark, {})
    if kind not in known:
        client: Any = getattr(spark, "_client", None)  # private, but there is no newSession
        make: Any = type(spark)
        known[kind] = make(connection=client._builder)
    return known[kind]


COMMITTERS: Mapping[str, str] = {
    "spark.sql.parquet.output.committer.class": "org.apache.parquet.hadoop.ParquetOutputCommitter",
    "spark.sql.sources.commitProtocolClass": (
        "org.apache.spark.sql.execution.datasources.SQLHadoopMapReduceCommitProtocol"
    ),
}
"""Settings of a session, and by which values files are where they are looked for: other committers are for stores."""
