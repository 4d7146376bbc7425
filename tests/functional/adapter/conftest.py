"""dbt's own suites for adapters, which run twice: as they are, and with every table z-ordered (``make suites``)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from dbt.tests.fixtures import project
from pyspark.sql import SparkSession

from dbt_zorder.adapter.impl import ZorderAdapter
from tests.functional.adapter.dialect import run_sql_for_tests, update_column_sql, write_project_files
from tests.functional.adapter.first_column import zorder_settings

RUNS = ("plain", "zordered")

SHARE = {
    "test_basic.py::TestSimpleMaterializations": "zordered",
    "test_basic.py::TestIncremental": "zordered",
    "test_basic.py::TestSnapshotTimestamp": "zordered",
    "test_basic.py::TestEphemeral": "plain",
    "test_basic.py::TestTableMaterialization": "plain",
    "test_basic.py::TestGenericTests": "plain",
    "test_basic.py::TestValidateConnection": "plain",
    "test_basic.py::TestAdapterMethod": "plain",
    "test_dbt_clone.py::TestCloneNotPossible": "zordered",
    "test_empty.py::TestEmpty": "plain",
}
"""What CI runs of the suites, and which way. ``ZORDER_SUITES`` names one way for all of them."""


MARKED_BY_THEMSELVES = ("test_python_model.py", "test_simple_seed.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave to ``make suites`` what is not in CI's share."""
    folder = Path(__file__).parent
    for item in items:
        if item.path.parent != folder or item.path.name in MARKED_BY_THEMSELVES:
            continue
        if _name(item) not in SHARE:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="class", autouse=True)
def suites_run(request: pytest.FixtureRequest) -> Iterator[str]:
    """Return which of the two runs this is; in the second one every table is z-ordered by its first column."""
    run = os.environ.get("ZORDER_SUITES") or SHARE.get(_name(request.node), "plain")
    if run not in RUNS:
        msg = f"ZORDER_SUITES is {run!r}, but only {' and '.join(RUNS)} are runs of the suites."
        raise pytest.UsageError(msg)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ZorderAdapter, "run_sql_for_tests", run_sql_for_tests)
        patch.setattr(ZorderAdapter, "update_column_sql", update_column_sql)
        patch.setattr(project, "write_project_files", write_project_files)
        if run == "zordered":
            patch.setattr(ZorderAdapter, "zorder_settings", zorder_settings)
        yield run


@pytest.fixture(scope="class")
def profile_user(spark: SparkSession) -> str:
    """Return who owns the tables of this session."""
    return str(spark.sql("SELECT current_user()").collect()[0][0])


def _name(node: pytest.Item | pytest.Collector) -> str:
    return "::".join(node.nodeid.rsplit("/", 1)[-1].split("::")[:2])
