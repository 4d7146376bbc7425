"""Materialized views, which Spark does not have."""

from __future__ import annotations

import pytest
from dbt.tests.adapter.materialized_view.basic import MaterializedViewBasic


@pytest.mark.skip(reason="Spark has no materialized views")
class TestMaterializedViewBasic(MaterializedViewBasic):
    pass
