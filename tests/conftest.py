"""One Spark session for the whole run: it takes seconds to start, and dbt's own threads share it."""

from __future__ import annotations

from collections.abc import Iterator

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

    session = open_session({"spark.sql.ansi.enabled": "false"}, session_dir)
    yield session
    session.stop()
