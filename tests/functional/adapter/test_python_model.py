"""dbt's suites for Python models, plain and z-ordered, and what they do not ask."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.adapter.python_model.test_python_model import (
    BasePythonEmptyTests,
    BasePythonIncrementalTests,
    BasePythonMetaGetTests,
    BasePythonModelTests,
    BasePythonSampleTests,
)
from dbt.tests.adapter.python_model.test_spark import (
    PANDAS_MODEL,
    PANDAS_ON_SPARK_MODEL,
    PYSPARK_MODEL,
)
from dbt.tests.util import run_dbt, run_dbt_and_capture
from pyspark.sql import SparkSession

from dbt_zorder import pruning
from dbt_zorder.spark.catalog import TableName, describe
from tests.support import same_rows


class TestPythonModel(BasePythonModelTests):
    pass


@pytest.mark.slow
class TestZorderedPythonModel(BasePythonModelTests):
    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return {"models": {"+zorder_by": "id"}}


class TestPythonIncremental(BasePythonIncrementalTests):
    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return {"models": {"+incremental_strategy": "append"}}  # merge needs Delta, Iceberg or Hudi


class TestZorderedPythonIncremental(BasePythonIncrementalTests):
    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return {"models": {"+incremental_strategy": "append", "+zorder_by": "id"}}


@pytest.mark.slow
class TestPythonMetaGet(BasePythonMetaGetTests):
    pass


class TestPythonEmpty(BasePythonEmptyTests):
    pass


@pytest.mark.slow
class TestPythonSample(BasePythonSampleTests):
    pass


RETURNS = "\n\ndef model(dbt, session):\n    dbt.config(materialized='table')\n"
ARROW_MODEL = "import pyarrow as pa" + RETURNS + "    return pa.table({'a': [1, None], 'at': ['x', 'y']})\n"
MISSING_MODEL = (
    "import pandas as pd"
    + RETURNS
    + "    return pd.DataFrame({'f': [1.5, None], 's': ['x', None], 'n': [None, None],\n"
    "        'at': pd.to_datetime(['2020-01-01 12:00', None]), 'c': pd.Categorical(['x', None])}, index=[7, 8])\n"
)


class TestDataFrames:
    """``BasePySparkTests``, without Koalas: it became pandas on Spark, and runs on no Python of today."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        zordered = PANDAS_MODEL.replace('"table",', '"table", zorder_by=["Latitude"], zorder_files=2,')
        return {
            "pandas_df.py": PANDAS_MODEL,
            "pyspark_df.py": PYSPARK_MODEL,
            "pandas_on_spark_df.py": PANDAS_ON_SPARK_MODEL,
            "zordered_df.py": zordered,
            "arrow_table.py": ARROW_MODEL,
            "missing.py": MISSING_MODEL,
        }

    def test_every_kind_of_data_frame_becomes_a_table(self, project: Any, spark: SparkSession) -> None:
        results = run_dbt(["run"])
        assert [str(result.status) for result in results] == ["success"] * 6
        schema = project.test_schema
        expected = spark.table(f"{schema}.pyspark_df")
        assert expected.count() == 5
        for name in ("pandas_df", "pandas_on_spark_df", "zordered_df"):
            assert same_rows(spark.table(f"{schema}.{name}"), expected)
        assert len(spark.table(f"{schema}.zordered_df").inputFiles()) == 2
        assert spark.table(f"{schema}.arrow_table").orderBy("at").collect() == [(1, "x"), (None, "y")]

    def test_what_pandas_misses_is_null(self, project: Any, spark: SparkSession) -> None:
        table = spark.table(f"{project.test_schema}.missing")
        assert table.columns == ["f", "s", "n", "at", "c"], "the index is no column"
        assert dict(table.dtypes)["at"] == "timestamp"
        found = table.selectExpr("f", "s", "n", "cast(at as string)", "c").orderBy("f").collect()
        assert found == [(None,) * 5, (1.5, "x", None, "2020-01-01 12:00:00", "x")]


GROWING = """
from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import functions as f
from pyspark.sql.types import LongType

STEP = 100


@dataclass
class Range:
    first: int
    end: int


def hashed(value):
    return value * 7 % STEP


def model(dbt, session):
    dbt.config(materialized="incremental", CONFIG)
    rows = Range(0, 300)
    if dbt.is_incremental:
        seen = session.table(str(dbt.this)).agg(f.max("id")).first()[0] + 1
        rows = Range(seen, seen + 60)
    session.conf.set("spark.sql.shuffle.partitions", "5")
    numbers = dbt.ref("numbers").filter((f.col("id") >= rows.first) & (f.col("id") < rows.end))
    hashing = f.udf(hashed, LongType())
    return numbers.select("id", hashing("id").alias("a"), (f.col("id") % 3).cast("int").alias("p"))
"""
EXPECTED = "select id, id * 7 % 100 as a, cast(id % 3 as int) as p from range({})"


class TestBatches:
    """Incremental Python models with functions and classes of their own, in threads of one session."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        zorder = "zorder_by=['a', 'id'], zorder_files=4, zorder_optimize='never'"
        return {
            "numbers.sql": "{{ config(materialized='table') }} select id from range(1000)",
            "plain.py": GROWING.replace("CONFIG", "incremental_strategy='append'"),
            "zordered.py": GROWING.replace("CONFIG", zorder),
            "parted.py": GROWING.replace("CONFIG", zorder + ", partition_by='p', incremental_strategy='append'"),
            "again.py": GROWING.replace("CONFIG", "partition_by='p', incremental_strategy='insert_overwrite'").replace(
                "seen, seen + 60", "0, 1000"
            ),
        }

    def test_batches_are_added_as_those_of_sql_models_are(self, project: Any, spark: SparkSession) -> None:
        before = spark.conf.get("spark.sql.shuffle.partitions")
        run_dbt(["run"])
        results = {r.node.name: r for r in run_dbt(["run", "--select", "numbers+", "--threads", "4"])}
        schema = project.test_schema
        for name, rows in {"plain": 360, "zordered": 360, "parted": 360, "again": 1000}.items():
            assert same_rows(spark.table(f"{schema}.{name}").select("id", "a", "p"), spark.sql(EXPECTED.format(rows)))
        assert results["zordered"].adapter_response["appended"] is True
        assert pruning.sound(spark, f"{schema}.zordered", ["a = 7 or id > 290"]) == []
        assert pruning.explain(spark, f"{schema}.zordered", "a = 7").files_read in (1, 2, 3, 4)
        info = describe(spark, TableName(schema, "plain"))
        assert info is not None
        assert info.kind == "MANAGED"
        assert spark.conf.get("spark.sql.shuffle.partitions") == before, "a setting of a model ends with it"
        assert not spark.catalog.listTables("global_temp")
        assert not [name for name in sys.modules if name.startswith("dbt_python_model_")]


BROKEN = """def helper(rows):
    return 1 / rows


def model(dbt, session):
    dbt.config(materialized='table', ZORDER)
    return helper(0)
"""
MISTAKES = {
    "raises": (BROKEN, 'File "models/m.py", line 7, in model return helper(0)', "ZeroDivisionError: division by zero"),
    "asks": (BROKEN.replace("helper(0)", "session.sql('select nothing')"), "line 7, in model", "`nothing` cannot be"),
    "exits": (BROKEN.replace("helper(0)", "exit(3)"), "line 7, in model", "SystemExit: 3"),
    "returns": (BROKEN.replace("helper(0)", "[1]"), "model() returned builtins.list", "made only of a DataFrame"),
    "mixes": (
        BROKEN.replace("helper(0)", "__import__('pandas').DataFrame({'x': [1, 'a']})"),
        "cannot become a table",
        "column x",
    ),
    "fails in a worker": (
        BROKEN.replace(
            "helper(0)", "session.range(3).select(__import__('pyspark').sql.functions.udf(helper)('id').alias('id'))"
        ),
        'File "models/m.py", line 2, in helper',
        "ZeroDivisionError: division by zero",
    ),
}


class TestMistakes:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"m.py": BROKEN.replace("helper(0)", "session.range(10)").replace("ZORDER", "zorder_by='id'")}

    @pytest.mark.parametrize("mistake", MISTAKES)
    def test_a_model_that_fails_tells_its_own_lines(self, project: Any, spark: SparkSession, mistake: str) -> None:
        path = Path(project.project_root) / "models" / "m.py"
        if mistake == "raises":
            run_dbt(["run"])
        code, *messages = MISTAKES[mistake]
        path.write_text(code.replace("ZORDER", "zorder_by='id'"))
        _, text = run_dbt_and_capture(["run"], expect_pass=False)
        flat = " ".join(text.split())
        for message in messages:
            assert message in flat, text
        assert "site-packages" not in flat
        assert "\tat " not in text
        assert spark.table(f"{project.test_schema}.m").count() == 10, "the table is as it was"
