from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.errors import ConfigError
from dbt_zorder.tables.parquet.partition_discovery import let_folders_tell
from tests.support import settings


def test_a_session_that_insists_on_the_catalog_is_told_so(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    with settings(spark, {"spark.sql.hive.manageFilesourcePartitions": "true"}):
        monkeypatch.setattr(type(spark.conf), "set", lambda *_: None)
        with pytest.raises(ConfigError, match="is true in this session and cannot be changed"):
            let_folders_tell(spark)
        monkeypatch.undo()
