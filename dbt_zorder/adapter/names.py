"""What tables and messages call the things of dbt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dbt.adapters.base import BaseRelation

from dbt_zorder.catalog import TableName


def table_name(relation: BaseRelation) -> TableName:
    """Return a relation as the name of a table."""
    return TableName(str(relation.schema), str(relation.identifier))


def model_name(model: Mapping[str, Any]) -> str:
    """Return what messages call a model: its name and its file."""
    return f"'{model.get('name')}' ({model.get('original_file_path')})"
