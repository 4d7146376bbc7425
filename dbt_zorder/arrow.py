"""Rows of a small DataFrame as Arrow."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame


def collect_arrow(df: DataFrame) -> pa.Table:
    """Return all rows of a small DataFrame as one Arrow table, by the way that the installed PySpark has."""
    if hasattr(df, "toArrow"):
        return df.toArrow()
    batches = df._collect_as_arrow()  # type: ignore[operator]
    if batches:
        return pa.Table.from_batches(batches)
    from pyspark.sql.pandas.types import to_arrow_schema

    return pa.Table.from_batches([], schema=to_arrow_schema(df.schema))
