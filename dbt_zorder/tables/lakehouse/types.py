"""Convert the columns of a query to the types and values that a format stores."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from dbt_zorder.spark.sql import quote_name


def replace_columns(df: DataFrame, kept: Mapping[str, str]) -> DataFrame:
    """Replace the values of columns in a query, and keep the order of the columns.

    Args:
        df: the query.
        kept: the SQL expressions of the new values, by column name.
    """
    if not kept:
        return df
    names = ((column, quote_name(column.name)) for column in df.schema.fields)
    return df.select(
        *(f.expr(kept.get(column.name, name)).alias(column.name, metadata=column.metadata) for column, name in names)
    )
