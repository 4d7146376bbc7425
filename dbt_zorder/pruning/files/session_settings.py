"""What a predicate means depends on settings; a filter holds only where they are as when its files were chosen.

A query is written when its files are chosen, and may run after a hook or another thread has set another zone or another
way to compare, or as a view, which keeps the settings under which it was made. So Spark is asked for them in the query
itself, where they are those of the predicate's own casts; it finds out before it lists files.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import SparkSession

from dbt_zorder.spark.conf import ANSI, CASE_SENSITIVE, DATETIME_TO_STRING, ESCAPED_LITERALS, SESSION_ZONE
from dbt_zorder.spark.jvm import has_jvm
from dbt_zorder.spark.sql import quote_string

Settings = tuple[str | None, ...]
"""Values of ``_KEYS`` in a session."""

ZONE_SQL = "date_format(timestamp_millis(0L), 'VV')"
"""The id of the time zone in which Spark casts what stands beside this; ``current_timezone()`` is the session's."""

PROBES = {
    "1 IN ('01')": ANSI,  # as texts or, under ANSI, as numbers
    "CAST(16777216 AS FLOAT) = 16777217": ANSI,  # as floats or, under ANSI, as doubles
    # as dates or as texts
    "DATE '2024-01-05' < '2024-1-1'": DATETIME_TO_STRING,
    r"length('\\') = 1": ESCAPED_LITERALS,
    "length('a''b') = 3": "spark.sql.legacy.consecutiveStringLiterals.enabled",
    # 18 digits behind the point or, without, as many as there is room for
    "typeof(CAST(1 AS DECIMAL(20, 10)) / CAST(3 AS DECIMAL(20, 10))) = 'decimal(38,18)'": (
        "spark.sql.decimalOperations.allowPrecisionLoss"
    ),
    "typeof(1e0) = 'double'": "spark.sql.legacy.exponentLiteralAsDecimal.enabled",
    "typeof(TIMESTAMP '2024-01-01') = 'timestamp'": "spark.sql.timestampType",
}
"""Tests of what a predicate's text means, and the setting that each depends on; none of them ever fails."""

_OTHERS = (
    SESSION_ZONE,
    "spark.sql.legacy.timeParserPolicy",
    CASE_SENSITIVE,
    "spark.sql.ansi.doubleQuotedIdentifiers",
)
_KEYS = tuple(dict.fromkeys([*PROBES.values(), *_OTHERS]))
_WORDS = {True: "TRUE", False: "FALSE", None: "NULL"}

Answers = tuple[Sequence[bool | None], str | None]
"""What the probes give, and the time zone where it was asked for."""

_answers: dict[tuple[Settings, bool], Answers] = {}


def settings_of(spark: SparkSession) -> Settings:
    """Return what a session says of the settings that the meaning of a predicate depends on."""
    return tuple(spark.conf.get(key, None) for key in _KEYS)


def was_on(settings: Settings, key: str) -> bool:
    """Tell whether one of the settings was on."""
    return str(settings[_KEYS.index(key)]).lower() == "true"


def pinned(spark: SparkSession, exclusion: str, settings: Settings, *, zoned: bool) -> str:
    """Return the filter for files that were chosen under some settings; under any others it leaves none out.

    Args:
        spark: the session, which has these settings.
        exclusion: the filter.
        settings: of ``settings_of``.
        zoned: the predicate depends on the time zone.
    """
    answers, zone = _answers_of(spark, settings, zoned)
    differs = [f"NOT (({probe}) <=> {_WORDS[answer]})" for probe, answer in zip(PROBES, answers, strict=True)]
    if zone is not None:
        differs.append(_in_another_zone(zone))
    return f"({' OR '.join(differs)} OR {exclusion})"


def _answers_of(spark: SparkSession, settings: Settings, zoned: bool) -> Answers:
    """Return what the probes give; they are run once for each state of the settings, which takes 13 ms."""
    key = (settings, zoned)
    found = _answers.get(key)
    if found is None:
        found = _asked(spark, zoned)
        # servers of Spark Connect may be of different versions, and another thread may have set something meanwhile
        if has_jvm(spark) and settings_of(spark) == settings:
            _answers[key] = found
    return found


def _asked(spark: SparkSession, zoned: bool) -> Answers:
    # of a local relation, so it takes no job
    text = ", ".join([*PROBES, ZONE_SQL if zoned else "NULL"])
    *answers, zone = spark.sql(f"SELECT {text} FROM VALUES (1)").collect()[0]
    return answers, zone


def _in_another_zone(zone: str) -> str:
    # formats of the LEGACY time parser have no 'VV': it is told by its fractions, which it takes for milliseconds
    known = "date_format(timestamp_millis(123L), 'SSSSSS') = '123000'"
    return f"if({known}, {ZONE_SQL} <> {quote_string(zone)}, true)"
