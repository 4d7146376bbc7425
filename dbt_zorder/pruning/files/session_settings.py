"""Bind a filter to the session settings under which its files were chosen.

The meaning of a predicate depends on settings. A query is written when its files are chosen, but may run later. Until
then, a hook or another thread may set another time zone or another way to compare. A view keeps the settings under
which it was made. So the query itself tests the settings, at the point where they also apply to the predicate's own
casts. Spark evaluates these tests before it lists files.
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
"""SQL of the time zone in which Spark casts at this point of the query; ``current_timezone()`` is the session's."""

PROBES = {
    "1 IN ('01')": ANSI,  # compares texts or, under ANSI, numbers
    "CAST(16777216 AS FLOAT) = 16777217": ANSI,  # compares floats or, under ANSI, doubles
    # compares dates or texts
    "DATE '2024-01-05' < '2024-1-1'": DATETIME_TO_STRING,
    r"length('\\') = 1": ESCAPED_LITERALS,
    "length('a''b') = 3": "spark.sql.legacy.consecutiveStringLiterals.enabled",
    # 18 digits after the point or, without the setting, as many as fit
    "typeof(CAST(1 AS DECIMAL(20, 10)) / CAST(3 AS DECIMAL(20, 10))) = 'decimal(38,18)'": (
        "spark.sql.decimalOperations.allowPrecisionLoss"
    ),
    "typeof(1e0) = 'double'": "spark.sql.legacy.exponentLiteralAsDecimal.enabled",
    "typeof(TIMESTAMP '2024-01-01') = 'timestamp'": "spark.sql.timestampType",
}
"""Tests of the meaning of a predicate's text, and the setting that each depends on. None of them ever fails."""

_OTHERS = (
    SESSION_ZONE,
    "spark.sql.legacy.timeParserPolicy",
    CASE_SENSITIVE,
    "spark.sql.ansi.doubleQuotedIdentifiers",
)
_KEYS = tuple(dict.fromkeys([*PROBES.values(), *_OTHERS]))
_WORDS = {True: "TRUE", False: "FALSE", None: "NULL"}

Answers = tuple[Sequence[bool | None], str | None]
"""Results of the probes, and the time zone if requested."""

_answers: dict[tuple[Settings, bool], Answers] = {}


def read_settings(spark: SparkSession) -> Settings:
    """Return a session's values of the settings that the meaning of a predicate depends on."""
    return tuple(spark.conf.get(key, None) for key in _KEYS)


def setting_is_on(settings: Settings, key: str) -> bool:
    """Return whether one of the settings was on."""
    return str(settings[_KEYS.index(key)]).lower() == "true"


def bind_to_settings(spark: SparkSession, exclusion: str, settings: Settings, *, zoned: bool) -> str:
    """Return the filter for files that were chosen under these settings; under any others it excludes none.

    Args:
        spark: session that has these settings.
        exclusion: filter that excludes the files.
        settings: result of ``read_settings``.
        zoned: whether the predicate depends on the time zone.
    """
    answers, zone = _answers_of(spark, settings, zoned)
    differs = [f"NOT (({probe}) <=> {_WORDS[answer]})" for probe, answer in zip(PROBES, answers, strict=True)]
    if zone is not None:
        differs.append(_in_another_zone(zone))
    return f"({' OR '.join(differs)} OR {exclusion})"


def _answers_of(spark: SparkSession, settings: Settings, zoned: bool) -> Answers:
    """Return the results of the probes, which run once for each state of the settings and need 13 ms."""
    key = (settings, zoned)
    found = _answers.get(key)
    if found is None:
        found = _run_probes(spark, zoned)
        # Spark Connect servers may differ in version, and another thread may have changed a setting meanwhile
        if has_jvm(spark) and read_settings(spark) == settings:
            _answers[key] = found
    return found


def _run_probes(spark: SparkSession, zoned: bool) -> Answers:
    # a local relation needs no Spark job
    text = ", ".join([*PROBES, ZONE_SQL if zoned else "NULL"])
    *answers, zone = spark.sql(f"SELECT {text} FROM VALUES (1)").collect()[0]
    return answers, zone


def _in_another_zone(zone: str) -> str:
    # The LEGACY time parser has no 'VV'. Its fraction digits reveal it: it reads them as milliseconds.
    known = "date_format(timestamp_millis(123L), 'SSSSSS') = '123000'"
    return f"if({known}, {ZONE_SQL} <> {quote_string(zone)}, true)"
