"""x"""

from __future__ import annotations

from dbt.tests.adapter.catalog_integrations.test_catalog_integration import BaseCatalogIntegrationValidation


class TestCatalogIntegrationValidation(BaseCatalogIntegrationValidation):
    pass
