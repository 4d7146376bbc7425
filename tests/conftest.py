"""One Spark session for the whole run: it takes seconds to start, and dbt's own threads share it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

pytest_plugins = ["dbt.tests.fixtures.project"]


@pytest.fixture(scope="session")
def session_dir(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the folder that holds this run's own metastore and warehouse."""
    return str(tmp_path_factory.mktemp("session"))


@pytest.fixture(scope="session")
def spark(session_dir: str) -> Iterator[SparkSession]:
    """Return the session, with the settings that the adapter gives every session that it opens."""
    from dbt_zorder.adapter.session import open_session

    session = open_session({"spark.sql.ansi.enabled": "false", "spark.sql.shuffle.partitions": "3"}, session_dir)
    yield session
    session.stop()


@pytest.fixture(scope="class")
def dbt_profile_target(spark: SparkSession, session_dir: str) -> dict[str, Any]:
    """Return dbt's target: it opens no session of its own, but finds that of this process."""
    return {"type": "spark_zorder", "schema": "set by dbt's own fixtures", "threads": 2, "session_dir": session_dir}
