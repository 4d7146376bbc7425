"""dbt's own suites for adapters, which run twice: as they are, and with every table z-ordered (``make suites``).

Some run a third time, z-ordered in Delta Lake (``make format-test``).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from dbt.tests.fixtures import project
from pyspark.sql import SparkSession

from dbt_zorder.adapter.impl import ZorderAdapter
from tests.functional.adapter.dialect import run_sql_for_tests, update_column_sql, write_project_files
from tests.functional.adapter.first_column import zorder_settings

RUNS = ("plain", "zordered", "delta")

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
    "test_incremental.py::TestIncrementalUniqueKey": "zordered",
    "test_incremental.py::TestMergeExcludeColumns": "zordered",
    "test_incremental.py::TestMergePredicates": "zordered",
    "test_incremental.py::TestDeleteInsertPredicates": "zordered",
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
        if run != "plain":
            patch.setattr(ZorderAdapter, "zorder_settings", zorder_settings)
        yield run


@pytest.fixture(scope="class")
def dbt_project_yml(suites_run: str, project_root: Any, project_config_update: Any) -> dict[str, Any]:
    """Write the project as dbt's own fixture does, in the third run with Delta as the format of all that is a table."""
    update = project_config_update or {}
    update = yaml.safe_load(update) if isinstance(update, str) else dict(update)
    if suites_run == "delta":
        for kind in ("models", "seeds", "snapshots"):
            update[kind] = {"+file_format": "delta", **update.get(kind, {})}
    config = {"name": "test", "profile": "test", "flags": {"send_anonymous_usage_stats": False}, **update}
    (Path(project_root) / "dbt_project.yml").write_text(yaml.safe_dump(config))
    return config


@pytest.fixture(scope="class")
def profile_user(spark: SparkSession) -> str:
    """Return who owns the tables of this session."""
    return str(spark.sql("SELECT current_user()").collect()[0][0])


def _name(node: pytest.Item | pytest.Collector) -> str:
    return "::".join(node.nodeid.rsplit("/", 1)[-1].split("::")[:2])
