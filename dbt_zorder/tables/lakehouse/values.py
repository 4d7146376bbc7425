"""A query whose columns get the types and values that a format keeps."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from dbt_zorder.spark.sql import quote_name


def with_columns_as(df: DataFrame, kept: Mapping[str, str]) -> DataFrame:
    """Return a query with other values in some columns, all of them in their places.

    Args:
        df: the query.
        kept: SQL text of the values, by the column's name.
    """
    if not kept:
        return df
    names = ((column, quote_name(column.name)) for column in df.schema.fields)
    return df.select(
        *(f.expr(kept.get(column.name, name)).alias(column.name, metadata=column.metadata) for column, name in names)
    )
