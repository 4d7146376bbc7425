"""What tables and messages call the things of dbt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dbt.adapters.base import BaseRelation

from dbt_zorder.errors import ZorderError
from dbt_zorder.spark.catalog import TableName


def table_name(relation: BaseRelation) -> TableName:
    """Return a relation as the name of a table.

    Raises:
        ZorderError: it is a query, which dbt makes of a test's relation by the config ``where``.
    """
    if isinstance(relation, str):
        msg = (
            "Stats are of a whole table, so a test of them cannot heed its config 'where': set it to null. "
            f"Given: {relation}"
        )
        raise ZorderError(msg)
    return TableName(str(relation.schema), str(relation.identifier))


def model_name(model: Mapping[str, Any]) -> str:
    """Return what messages call a model: its name and its file."""
    return f"'{model.get('name')}' ({model.get('original_file_path')})"
