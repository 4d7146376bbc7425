"""Names of dbt's relations and models in Spark and in messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dbt.adapters.base import BaseRelation
from pyspark.sql import SparkSession

from dbt_zorder.errors import ZorderError
from dbt_zorder.spark.catalog import TableName, describe
from dbt_zorder.stats.summary import absent


def table_name(relation: BaseRelation) -> TableName:
    """Return the table name of a relation.

    Raises:
        ZorderError: the relation is a query. dbt turns a test's relation into one if the test has the config ``where``.
    """
    if isinstance(relation, str):
        msg = (
            "Stats are of a whole table, so a test of them cannot heed its config 'where': set it to null. "
            f"Given: {relation}"
        )
        raise ZorderError(msg)
    return TableName(str(relation.schema), str(relation.identifier))


def model_name(model: Mapping[str, Any]) -> str:
    """Return the name and file of a model, as messages show it."""
    return f"'{model.get('name')}' ({model.get('original_file_path')})"


def existing_name(spark: SparkSession, table: TableName) -> TableName:
    """Return the name of a table, and raise if the table does not exist.

    Raises:
        ZorderError: the table does not exist.
    """
    if describe(spark, table) is None:
        raise ZorderError(absent(table))
    return table
