from __future__ import annotations

import base64
import json
import os
import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StructType, UserDefinedType

from dbt_zorder.errors import ZorderError
from dbt_zorder.stats import footer_schema as module
from dbt_zorder.stats.cache import cached_stats
from dbt_zorder.stats.footer_schema import SCHEMA_KEY, footer_schema
from dbt_zorder.stats.schema import stats_schema
from dbt_zorder.stats.store import load_stats, read_stats, stats_path

SCHEMA = stats_schema({"id": LongType()})


class Touch:
    """Makes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.open, (str(self.path), os.O_CREAT)


def plant(spark: SparkSession, location: Path, schema: Any, name: str = "part-0.stats") -> None:
    """Write stats whose footer names columns of somebody's choice."""
    bounds = {"min_value": 1, "max_value": 2, "null_count": 0}
    row = {"file_path": "f", "file_size": 1, "row_count": 1, "version": "", "columns": {"id": bounds}}
    metadata = {
        SCHEMA_KEY: schema if isinstance(schema, str) else json.dumps(schema),
        "org.apache.spark.version": "3.5.3",
    }
    folder = Path(stats_path(str(location)))
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist([row]).replace_schema_metadata(metadata), folder / name)


def with_udt(path: Path) -> dict[str, Any]:
    """Return the columns of stats with one bound of a type that makes a file."""
    schema: dict[str, Any] = json.loads(SCHEMA.json())
    pickled = base64.b64encode(pickle.dumps(Touch(path))).decode()
    schema["fields"][-1]["type"]["fields"][0]["type"]["fields"][0]["type"] = {
        "type": "udt", "pyClass": "os.no_such_class", "sqlType": "long", "serializedClass": pickled,
    }  # fmt: skip
    return schema


@pytest.fixture(params=["by the client", "by the server"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let footers be read as in this process, and as over Spark Connect."""
    if request.param == "by the server":
        monkeypatch.setattr(module, "has_jvm", lambda _: False)


@pytest.mark.usefixtures("way")
def test_the_first_file_names_the_columns(spark: SparkSession, tmp_path: Path) -> None:
    location = tmp_path / "a [b] {c}"
    plant(spark, location, SCHEMA.json(), "part-1.stats")
    plant(spark, location, StructType().json(), "part-2.stats")
    (Path(stats_path(str(location))) / "_SUCCESS").touch()
    assert footer_schema(spark, stats_path(str(location))) == SCHEMA
    assert read_stats(spark, str(location)).select("columns.id.max_value").distinct().collect() == [(2,)]


@pytest.mark.usefixtures("way")
def test_no_type_of_a_user_is_made_of_a_footer(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(UserDefinedType, "fromJson", lambda *_: pytest.fail("a class was looked up"))
    plant(spark, tmp_path, with_udt(tmp_path / "made"))
    for read in (read_stats, load_stats, cached_stats):
        with pytest.raises(ZorderError, match=rf"columns in {tmp_path}/_zorder_stats cannot be read: 'udt' is no type"):
            read(spark, str(tmp_path))
    assert not (tmp_path / "made").exists()


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("text", ["", "{}", "[]", "no json", '"long"'])
def test_what_names_no_columns_is_an_error(spark: SparkSession, tmp_path: Path, text: str) -> None:
    plant(spark, tmp_path, text)
    with pytest.raises((LookupError, ZorderError), match=str(tmp_path)):
        read_stats(spark, str(tmp_path))


def test_a_long_footer_is_read_whole(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "has_jvm", lambda _: False)
    monkeypatch.setattr(module, "_FOOTER_BYTES", 16)
    plant(spark, tmp_path, SCHEMA.json())
    assert footer_schema(spark, stats_path(str(tmp_path))) == SCHEMA
