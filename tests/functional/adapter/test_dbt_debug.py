"""``dbt debug``."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.adapter.dbt_debug.test_dbt_debug import (
    BaseDebugInvalidProjectPostgres,
    BaseDebugPostgres,
    BaseDebugProfileVariable,
)


class TestDebug(BaseDebugPostgres):
    @pytest.fixture(scope="class")
    def dbt_profile_data(self, unique_schema: str, session_dir: str) -> dict[str, Any]:
        good = {"type": "spark_zorder", "schema": unique_schema, "threads": 2, "session_dir": session_dir}
        outputs = {
            "default": good,
            "nopass": {key: value for key, value in good.items() if key != "schema"},
            "wronguser": {**good, "method": "thrift", "host": "127.0.0.1", "port": 1, "connect_retries": 0},
            "none_target": None,
        }
        return {"test": {"outputs": outputs, "target": "default"}}


class TestDebugInvalidProject(BaseDebugInvalidProjectPostgres):
    pass


class TestDebugProfileVariable(BaseDebugProfileVariable):
    """The suite has a project and no test of its own."""

    def test_profile_is_found(self, project: Any) -> None:
        assert project.adapter.config.profile_name == "test"
