"""A session on a real server: ``ZORDER_SERVER=s3 pytest tests/servers``, or ``metastore``.

PySpark has one session in a process, so each server has a run of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.adapter.session.open import open_session
from dbt_zorder.spark.catalog import TableName
from tests.conftest import SERVERS_HERE
from tests.faults.metastore import metastore
from tests.servers.object_store import object_store, store_settings
from tests.support import unique


@pytest.fixture(scope="session")
def server() -> str:
    """Return which server this run is on: ``s3`` or ``metastore``."""
    return SERVERS_HERE[0]


@pytest.fixture(scope="session")
def server_settings(server: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, str]]:
    """Start the server; return the settings by which any session is on it, also one of another process."""
    folder = tmp_path_factory.mktemp(server)
    if server == "s3":
        with object_store(folder) as address:
            yield store_settings(address)
    else:
        with metastore(folder) as uri:
            yield {"spark.hadoop.hive.metastore.uris": uri}


@pytest.fixture(scope="session")
def spark(server_settings: Mapping[str, str], session_dir: str) -> Iterator[SparkSession]:
    """Return the session: on S3 its warehouse is a bucket, else its catalog is the metastore's."""
    settings = {"spark.sql.shuffle.partitions": "2", "spark.master": "local[2]", **server_settings}
    session = open_session(settings, session_dir)
    yield session
    session.stop()


@pytest.fixture(scope="module")
def database(spark: SparkSession) -> str:
    """Return a database of this module's own, whose tables lie on the server; it goes with that."""
    name = unique("served")
    spark.sql(f"CREATE DATABASE {name}")
    return name


@pytest.fixture
def table(database: str) -> TableName:
    return TableName(database, unique("t"))
