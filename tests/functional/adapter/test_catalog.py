"""Kinds of relations in the catalog."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.adapter.catalog import files
from dbt.tests.adapter.catalog.relation_types import CatalogRelationTypes


class TestCatalogRelationTypes(CatalogRelationTypes):
    @pytest.fixture(scope="class", autouse=True)
    def models(self) -> dict[str, str]:
        """Those that Spark has: it knows no materialized views."""
        return {"my_table.sql": files.MY_TABLE, "my_view.sql": files.MY_VIEW}

    @pytest.mark.parametrize(
        ("node_name", "relation_type"),
        [("seed.test.my_seed", "table"), ("model.test.my_table", "table"), ("model.test.my_view", "view")],
    )
    def test_relation_types_populate_correctly(self, docs: Any, node_name: str, relation_type: str) -> None:
        super().test_relation_types_populate_correctly(docs, node_name, relation_type)
