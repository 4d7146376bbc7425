"""Checks whether a query's rows can be spooled to the local disk and read back unchanged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import ArrayType, DataType, DateType, MapType, StructField, StructType, TimestampType

from dbt_zorder.engine.local.row_estimate import estimated_row_bytes
from dbt_zorder.spark.conf import COMMITTERS

_CALENDAR = "spark.sql.parquet.datetimeRebaseModeInWrite"
_TIMESTAMP_SETTINGS = {
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
}
"""Settings that preserve timestamps; one of them suffices. The second counts only if the first is INT96."""
_SECRETS = ("parquet.crypto.", "parquet.encryption.")


def can_spool(spark: SparkSession) -> bool:
    """Return whether a session runs all of its tasks in one process on this machine, so that both share a disk.

    Returns False if files would be encrypted, or be written to another place than expected.
    """
    context: Any = getattr(spark, "_jsc", None)
    if context is None or not context.sc().isLocal():
        return False
    if str(context.sc().conf().get("spark.io.encryption.enabled", "false")).lower() != "false":
        return False  # Spark must encrypt its temporary files
    if any(spark.conf.get(name, wanted) != wanted for name, wanted in COMMITTERS.items()):
        return False
    session: Any = spark._jsparkSession
    hadoop = session.sessionState().newHadoopConf()
    return not any(hadoop.getPropsWithPrefix(prefix).size() for prefix in _SECRETS)


def survives_parquet(df: DataFrame, columns: Sequence[StructField] | None = None) -> bool:
    """Return whether Parquet returns each value of a query, or of the given columns, unchanged.

    Dates and timestamps survive only if Spark's writer does not ask for the calendar of old ones.
    """
    fields = df.schema.fields if columns is None else columns
    spark = df.sparkSession
    kinds: list[type[DataType]] = []
    if _is(spark, _CALENDAR, "CORRECTED"):
        kinds.append(DateType)
        kind, legacy = _TIMESTAMP_SETTINGS
        if _is(spark, kind, _TIMESTAMP_SETTINGS[kind]) or (
            _is(spark, kind, "INT96") and _is(spark, legacy, _TIMESTAMP_SETTINGS[legacy])
        ):
            kinds.append(TimestampType)
    return all(_survives(field.dataType, tuple(kinds)) for field in fields)


def _is(spark: SparkSession, setting: str, value: str) -> bool:
    return str(spark.conf.get(setting)).upper() == value


def _survives(data_type: DataType, kinds: tuple[type[DataType], ...]) -> bool:
    if isinstance(data_type, ArrayType):
        return _survives(data_type.elementType, kinds)
    if isinstance(data_type, MapType):
        return _survives(data_type.keyType, kinds) and _survives(data_type.valueType, kinds)
    if isinstance(data_type, StructType):
        return bool(data_type.fields) and all(_survives(field.dataType, kinds) for field in data_type.fields)
    if isinstance(data_type, (DateType, TimestampType)):
        return isinstance(data_type, kinds)
    return estimated_row_bytes(StructType([StructField("value", data_type)])) is not None
