from __future__ import annotations

from typing import Any

import pytest
from dbt.adapters.spark.relation import SparkRelation

from dbt_zorder.adapter.names import table_name
from dbt_zorder.errors import ZorderError
from dbt_zorder.spark.catalog import TableName


def test_a_relation_is_a_table_by_schema_and_identifier() -> None:
    relation: Any = SparkRelation.create(schema="s", identifier="t")
    assert table_name(relation) == TableName("s", "t")


def test_a_query_in_place_of_a_relation_is_named() -> None:
    query: Any = "(select * from s.t where a > 1) dbt_subquery"
    with pytest.raises(ZorderError, match=r"config 'where': set it to null.*dbt_subquery"):
        table_name(query)
