"""Handle session settings that change how dates and times are read from files of other writers."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DataType, DateType, StructType, TimestampType

from dbt_zorder.spark.conf import is_on
from dbt_zorder.spark.ddl import type_ddl
from dbt_zorder.stats.schema import with_bounds

INT96_ZONE = "spark.sql.parquet.int96TimestampConversion"
"""With this setting, times of other writers, such as Impala, move by the session's time zone."""

FIELD_IDS = "spark.sql.parquet.fieldId.read.enabled"
"""With this setting, columns with a field id in the table's schema are matched by id, not by name."""

_ID = "parquet.field.id"

_REBASE = ("spark.sql.parquet.datetimeRebaseModeInRead", "spark.sql.parquet.int96RebaseModeInRead")
"""With LEGACY in either setting, dates and times before 1900 move to another calendar."""

_ONE_CALENDAR = "DATE '1900-01-03'"
"""From this day on all calendars and zones agree about the values in a file."""

_SHIFT = "INTERVAL '20' DAY"


def is_moved(spark: SparkSession, data_type: DataType) -> bool:
    """Return whether another session may read other values of this type than the current one."""
    if isinstance(data_type, TimestampType) and is_on(spark, INT96_ZONE):
        return True
    return isinstance(data_type, TimestampType | DateType) and is_legacy(spark, _REBASE)


def uses_field_ids(spark: SparkSession, schema: StructType) -> bool:
    """Return whether this session matches columns of a table to its files by field id."""
    return is_on(spark, FIELD_IDS) and f'"{_ID}":' in schema.json()


def without_moved(stats: DataFrame) -> DataFrame:
    """Return stats without the bounds that another session may not read from the same file."""
    spark = stats.sparkSession
    no_times, rebased = is_on(spark, INT96_ZONE), is_legacy(spark, _REBASE)

    def enclosing(kind: DataType | None, low: str, high: str) -> tuple[str, str]:
        if no_times and isinstance(kind, TimestampType):
            nothing = f"CAST(NULL AS {type_ddl(kind)})"
            return nothing, nothing
        return without_old(kind, low) if rebased else low, high

    return with_bounds(stats, enclosing) if no_times or rebased else stats


def widened(stats: DataFrame) -> DataFrame:
    """Return stats whose bounds are valid in either calendar.

    A session may change its calendar after files are chosen. Between the year 800 BC and 1900 the two calendars, and
    the zones, differ by less than 20 days.
    """

    def enclosing(kind: DataType | None, low: str, high: str) -> tuple[str, str]:
        if not isinstance(kind, TimestampType | DateType):
            return low, high
        lower = f"if({low} < date_from_unix_date(-1000000), NULL, try_subtract({low}, {_SHIFT}))"
        return (
            f"if({low} < {_ONE_CALENDAR}, {lower}, {low})",
            f"if({high} < {_ONE_CALENDAR}, try_add({high}, {_SHIFT}), {high})",
        )

    return with_bounds(stats, enclosing)


def without_old(kind: DataType | None, low: str) -> str:
    """Return SQL of a lower bound that is NULL where calendars differ; a file without a bound is read."""
    return f"if({low} < {_ONE_CALENDAR}, NULL, {low})" if isinstance(kind, TimestampType | DateType) else low


def is_legacy(spark: SparkSession, keys: Sequence[str]) -> bool:
    """Return whether one of the given calendar settings is LEGACY."""
    return any(str(spark.conf.get(key)).upper() == "LEGACY" for key in keys)
