"""The suites that dbt gives every adapter, as far as they make sense on Parquet.

Left out, because dbt-spark itself does not run them on Parquet: snapshots, which need MERGE and so Delta, Iceberg or
Hudi, and the suites of persist_docs, which alter columns of views and of Delta tables.
"""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.adapter.basic.test_adapter_methods import BaseAdapterMethod
from dbt.tests.adapter.basic.test_base import BaseSimpleMaterializations
from dbt.tests.adapter.basic.test_empty import BaseEmpty
from dbt.tests.adapter.basic.test_ephemeral import BaseEphemeral
from dbt.tests.adapter.basic.test_generic_tests import BaseGenericTests
from dbt.tests.adapter.basic.test_incremental import BaseIncremental
from dbt.tests.adapter.basic.test_singular_tests import BaseSingularTests
from dbt.tests.adapter.basic.test_singular_tests_ephemeral import BaseSingularTestsEphemeral
from dbt.tests.adapter.basic.test_table_materialization import BaseTableMaterialization
from dbt.tests.adapter.basic.test_validate_connection import BaseValidateConnection
from dbt.tests.adapter.empty.test_empty import BaseTestEmpty
from dbt.tests.adapter.incremental.test_incremental_on_schema_change import BaseIncrementalOnSchemaChange


class ZorderedById:
    """Every table of a suite z-ordered, by the column that all of its tables have."""

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return {"name": "zordered", "models": {"+zorder_by": "id", "+zorder_files": 3}}


class TestSimpleMaterializations(ZorderedById, BaseSimpleMaterializations):
    pass


class TestEmptyProject(BaseEmpty):
    pass


class TestSingular(BaseSingularTests):
    pass


class TestSingularEphemeral(BaseSingularTestsEphemeral):
    pass


class TestGeneric(BaseGenericTests):
    pass


class TestEphemeral(BaseEphemeral):
    pass


class TestTable(BaseTableMaterialization):
    pass


class TestIncremental(BaseIncremental):
    pass


class TestZorderedIncremental(ZorderedById, BaseIncremental):
    pass


class TestZorderedSchemaChanges(ZorderedById, BaseIncrementalOnSchemaChange):
    """dbt-spark itself runs only ``ignore`` and ``fail`` of these on Parquet."""


class TestEmptyFlag(BaseTestEmpty):
    pass


class TestConnection(BaseValidateConnection):
    pass


class TestCaching(BaseAdapterMethod):
    pass
