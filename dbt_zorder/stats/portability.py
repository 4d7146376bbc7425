"""Settings by which a session reads other dates and times from a file that Spark did not write, and what follows."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DataType, DateType, StructType, TimestampType

from dbt_zorder.spark.conf import is_on
from dbt_zorder.spark.ddl import type_ddl
from dbt_zorder.stats.schema import with_bounds

INT96_ZONE = "spark.sql.parquet.int96TimestampConversion"
"""With it times of other writers, as Impala, are moved by the session's time zone."""

FIELD_IDS = "spark.sql.parquet.fieldId.read.enabled"
"""With it columns that have a number in their table's schema are found by it in a file, and not by their names."""

_ID = "parquet.field.id"

_REBASE = ("spark.sql.parquet.datetimeRebaseModeInRead", "spark.sql.parquet.int96RebaseModeInRead")
"""Where one is LEGACY, dates and times of before 1900 are moved to another calendar."""

_ONE_CALENDAR = "DATE '1900-01-03'"
"""From here on all calendars and zones agree on what a file holds."""

_SHIFT = "INTERVAL '20' DAY"


def is_moved(spark: SparkSession, data_type: DataType) -> bool:
    """Tell whether values of a type, read by this session, may not be those that another one reads."""
    if isinstance(data_type, TimestampType) and is_on(spark, INT96_ZONE):
        return True
    return isinstance(data_type, TimestampType | DateType) and is_legacy(spark, _REBASE)


def goes_by_ids(spark: SparkSession, schema: StructType) -> bool:
    """Tell whether this session finds columns of a table in its files by numbers."""
    return is_on(spark, FIELD_IDS) and f'"{_ID}":' in schema.json()


def without_moved(stats: DataFrame) -> DataFrame:
    """Return stats without the bounds that another session may not read from the same file."""
    spark = stats.sparkSession
    no_times, rebased = is_on(spark, INT96_ZONE), is_legacy(spark, _REBASE)

    def known(kind: DataType | None, low: str, high: str) -> tuple[str, str]:
        if no_times and isinstance(kind, TimestampType):
            nothing = f"CAST(NULL AS {type_ddl(kind)})"
            return nothing, nothing
        return without_old(kind, low) if rebased else low, high

    return with_bounds(stats, known) if no_times or rebased else stats


def widened(stats: DataFrame) -> DataFrame:
    """Return stats whose bounds hold by either calendar: a session may be told the other after files are chosen.

    Between the year 800 BC and 1900 the two, and the zones of times, lie less than 20 days apart.
    """

    def known(kind: DataType | None, low: str, high: str) -> tuple[str, str]:
        if not isinstance(kind, TimestampType | DateType):
            return low, high
        lower = f"if({low} < date_from_unix_date(-1000000), NULL, try_subtract({low}, {_SHIFT}))"
        return (
            f"if({low} < {_ONE_CALENDAR}, {lower}, {low})",
            f"if({high} < {_ONE_CALENDAR}, try_add({high}, {_SHIFT}), {high})",
        )

    return with_bounds(stats, known)


def without_old(kind: DataType | None, low: str) -> str:
    """Return SQL of a lower bound that is NULL where calendars differ; without a bound a file is read."""
    return f"if({low} < {_ONE_CALENDAR}, NULL, {low})" if isinstance(kind, TimestampType | DateType) else low


def is_legacy(spark: SparkSession, keys: Sequence[str]) -> bool:
    """Tell whether one of some settings that name a calendar is LEGACY."""
    return any(str(spark.conf.get(key)).upper() == "LEGACY" for key in keys)
