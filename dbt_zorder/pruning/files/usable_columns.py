"""Decide which columns' statistics prove something to a session."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from dbt_zorder.pruning.files.table_facts import TableFacts
from dbt_zorder.pruning.predicate.names import has_default
from dbt_zorder.pruning.predicate.tree import Column
from dbt_zorder.stats.portability import FIELD_IDS, is_moved, uses_field_ids


def unusable_columns(
    spark: SparkSession, columns: Sequence[Column], facts: TableFacts, schema: StructType
) -> dict[Column, str]:
    """Return the columns whose statistics prove nothing to this session, and why."""
    found: dict[Column, str] = {}
    by_ids = uses_field_ids(spark, schema)
    for column in columns:
        if facts.is_partition(column.path):
            found[column] = f"Spark itself leaves out folders by the partition column '{column.name}'"
        elif is_moved(spark, column.data_type):
            found[column] = "this session is set to move dates or times that it reads to another calendar or time zone"
        elif by_ids:
            found[column] = f"{FIELD_IDS} is on, so columns are found by numbers, and statistics by names"
        elif has_default(schema[column.path[0]]):
            found[column] = f"'{column.path[0]}' has a default, which Spark reads from files without the column"
    return found
