"""Whether a query's rows can be copied to this machine's disk, and come back from there as they were."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import ArrayType, DataType, DateType, MapType, StructField, StructType, TimestampType

from dbt_zorder.engine.local.row_estimate import estimated_row_bytes
from dbt_zorder.spark.conf import COMMITTERS

_CALENDAR = "spark.sql.parquet.datetimeRebaseModeInWrite"
_MOMENTS = {
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
}
"""Of which one is to be so, that a moment comes back as it was; the second is asked where the first says INT96."""
_SECRETS = ("parquet.crypto.", "parquet.encryption.")


def can_spool(spark: SparkSession) -> bool:
    """Tell whether a session runs all of its tasks in one process on this machine, whose disk is ours.

    Not where files would be encrypted, or not be where they are looked for.
    """
    context: Any = getattr(spark, "_jsc", None)
    if context is None or not context.sc().isLocal():
        return False
    if str(context.sc().conf().get("spark.io.encryption.enabled", "false")).lower() != "false":
        return False  # what Spark writes on the way is to be encrypted
    if any(spark.conf.get(name, wanted) != wanted for name, wanted in COMMITTERS.items()):
        return False
    session: Any = spark._jsparkSession
    hadoop = session.sessionState().newHadoopConf()
    return not any(hadoop.getPropsWithPrefix(prefix).size() for prefix in _SECRETS)


def survives_parquet(df: DataFrame, columns: Sequence[StructField] | None = None) -> bool:
    """Tell whether Parquet gives back each value of a query, or of some of its columns, as it was.

    Dates and times do only where Spark's writer does not ask which calendar old ones are meant by.
    """
    fields = df.schema.fields if columns is None else columns
    spark = df.sparkSession
    kinds: list[type[DataType]] = []
    if _is(spark, _CALENDAR, "CORRECTED"):
        kinds.append(DateType)
        kind, legacy = _MOMENTS
        if _is(spark, kind, _MOMENTS[kind]) or (_is(spark, kind, "INT96") and _is(spark, legacy, _MOMENTS[legacy])):
            kinds.append(TimestampType)
    return all(_survives(field.dataType, tuple(kinds)) for field in fields)


def _is(spark: SparkSession, setting: str, value: str) -> bool:
    return str(spark.conf.get(setting)).upper() == value


def _survives(data_type: DataType, moments: tuple[type[DataType], ...]) -> bool:
    if isinstance(data_type, ArrayType):
        return _survives(data_type.elementType, moments)
    if isinstance(data_type, MapType):
        return _survives(data_type.keyType, moments) and _survives(data_type.valueType, moments)
    if isinstance(data_type, StructType):
        return bool(data_type.fields) and all(_survives(field.dataType, moments) for field in data_type.fields)
    if isinstance(data_type, (DateType, TimestampType)):
        return isinstance(data_type, moments)
    return estimated_row_bytes(StructType([StructField("value", data_type)])) is not None
