"""Convert the columns of a query to the values that Delta Lake stores."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql.types import StringType

from dbt_zorder.layout.partitions import null_if_unnamed
from dbt_zorder.request import BuildRequest, check_names, partition_columns
from dbt_zorder.spark.char_types import as_text
from dbt_zorder.spark.columns import naming
from dbt_zorder.tables.lakehouse.types import replace_columns


def in_delta_types(df: DataFrame, request: BuildRequest) -> DataFrame:
    """Return a query in the values that Delta stores: an empty partition text is NULL.

    CHAR and VARCHAR become STRING. "Partition Value Serialization" of Delta's protocol requires the NULL.

    Raises:
        ColumnError: two columns have one name, or ``partition_by`` names none.
    """
    check_names(df)
    df = as_text(df)
    return replace_columns(df, _nulls(df, request))


def _nulls(df: DataFrame, request: BuildRequest) -> dict[str, str]:
    """Return SQL expressions for the text partition columns, by name."""
    with naming("partition_by"):
        parts = partition_columns(df.sparkSession, df.schema, request)
    return {part.name: null_if_unnamed(part.sql) for part in parts if isinstance(part.data_type, StringType)}
