"""Catalogs beside the session's own."""

from __future__ import annotations

import pytest
from dbt.tests.adapter.catalog_integrations.test_catalog_integration import BaseCatalogIntegrationValidation


@pytest.mark.skip(reason="dbt-spark reads no catalogs.yml: catalogs are Spark's own settings")
class TestCatalogIntegrationValidation(BaseCatalogIntegrationValidation):
    def test_catalogs(self) -> None:
        """The suite has fixtures and no test."""
