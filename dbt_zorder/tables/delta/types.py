"""The values in which Delta Lake keeps the columns of a query."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql.types import StringType

from dbt_zorder.layout.partitions import null_if_unnamed
from dbt_zorder.request import BuildRequest, check_names, partition_columns
from dbt_zorder.spark.char_types import as_text
from dbt_zorder.spark.columns import naming
from dbt_zorder.tables.lakehouse.values import with_columns_as


def in_delta_types(df: DataFrame, request: BuildRequest) -> DataFrame:
    """Return a query in the values that Delta keeps: an empty text that parts a table is NULL.

    CHAR and VARCHAR become STRING. So it is by "Partition Value Serialization" of its protocol.

    Raises:
        ColumnError: two columns have one name, or ``partition_by`` names none.
    """
    check_names(df)
    df = as_text(df)
    return with_columns_as(df, _nulls(df, request))


def _nulls(df: DataFrame, request: BuildRequest) -> dict[str, str]:
    """Return SQL text of the columns of text that part the table, by their names."""
    with naming("partition_by"):
        parts = partition_columns(df.sparkSession, df.schema, request)
    return {part.name: null_if_unnamed(part.sql) for part in parts if isinstance(part.data_type, StringType)}
