"""A hash index serves sessions of plain Spark that never imported this package: joins, aggregates and look-ups."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
ROWS, BUCKETS = 100_000, 8

WRITER = """
import sys

from dbt_zorder.adapter.session.open import open_session
from dbt_zorder.layout.hash_index import HashIndex
from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableName
from dbt_zorder.tables.batch import Batch
from dbt_zorder.tables.merge import Merge
from dbt_zorder.tables.parquet.build import build
from dbt_zorder.tables.parquet.incremental import begin, increment
from dbt_zorder.tables.parquet.merge.merge_batch import merge_batch

folder, rows, buckets = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
spark = open_session({"spark.sql.shuffle.partitions": "3", "spark.driver.memory": "1g"}, folder)
QUERY = "SELECT id, pmod(hash(id), 1000) AS a, concat('k', pmod(hash(id, 1), 1000)) AS s FROM range({}, {})"


def act(side, kind):
    table = TableName("default", f"{kind}_{side}")
    spec = LayoutSpec(by=("id",) if kind == "merged" else ("a", "s"), files=24)
    wanted = BuildRequest(table, spec, key_columns=("id",), hash_index=HashIndex(["id"], buckets))
    build(spark, spark.sql(QUERY.format(0, rows)), wanted)
    for turn in range(3):
        first = rows + turn * 100
        if kind == "appended":
            batch = spark.sql(QUERY.format(first, first + 100))
            increment(spark, batch, wanted, Batch(may_rewrite=False), begin(spark, table))
        if kind == "merged":
            batch = spark.sql(f"{QUERY.format(first, first + 100)} UNION ALL SELECT id, -{turn}, 'm' FROM range(50)")
            report = merge_batch(spark, batch, wanted, Batch(may_rewrite=False), Merge(["id"]), begin(spark, table))
            assert report.merged.shared, "the version shares files with the one before"


for kind in ("built", "appended", "merged"):
    for side in ("one", "two"):
        act(side, kind)
spark.stop()
"""

READER = """
import json, sys

from pyspark.sql import SparkSession

folder = sys.argv[1]
spark = (
    SparkSession.builder.master("local[2]").enableHiveSupport().config("spark.ui.enabled", "false")
    .config("spark.driver.memory", "1g").config("spark.sql.autoBroadcastJoinThreshold", "-1")
    .config("spark.sql.parquet.filterPushdown", "false")
    .config("spark.hadoop.parquet.hadoop.vectored.io.enabled", "false")
    .config("spark.sql.warehouse.dir", f"{folder}/warehouse")
    .config("spark.hadoop.javax.jdo.option.ConnectionURL", f"jdbc:derby:;databaseName={folder}/metastore_db")
    .getOrCreate()
)


def asked(sql):
    df = spark.sql(sql)
    rows = [list(row) for row in df.collect()]
    final = df._jdf.queryExecution().executedPlan().toString().partition("== Initial Plan ==")[0]
    return {"rows": rows, "shuffles": final.count("Exchange hashpartitioning")}


def size(sql):
    # bytes that the tasks of a query read: of whole files, and not in vectors, which a local file does not count
    context = spark.sparkContext._jsc.sc()
    read = []
    for turn in range(2):
        context.listenerBus().waitUntilEmpty()
        read.append(context.statusStore().executorSummary("driver").totalInputBytes())
        if not turn:
            spark.sql(sql).write.format("noop").mode("overwrite").save()
    return read[1] - read[0]


found, KEYS = {}, range(7, 100_000, 12_001)
for kind in ("built", "appended", "merged"):
    one, two = f"{kind}_one", f"{kind}_two"
    spark.sql(f"CREATE TABLE {kind}_plain USING parquet AS SELECT id, a FROM {two}")
    found[kind] = {
        "both": asked(f"SELECT id, one.a, two.a FROM {one} one JOIN {two} two USING (id) ORDER BY id LIMIT 3"),
        "one": asked(f"SELECT id, one.a, two.a FROM {one} one JOIN {kind}_plain two USING (id) ORDER BY id LIMIT 3"),
        "groups": asked(f"SELECT id, count(*) AS n FROM {one} GROUP BY id ORDER BY id DESC LIMIT 3"),
        "counted": asked(f"SELECT one.id IS NULL, count(*) FROM {one} one FULL JOIN {two} two ON one.id = two.id "
                         "GROUP BY 1")["rows"],
        "all": size(f"SELECT * FROM {one}"),
        "keys": [size(f"SELECT * FROM {one} WHERE id = {key}") for key in KEYS],
        "found": [spark.table(one).where(f"id = {key}").count() for key in KEYS],
    }
assert not [name for name in sys.modules if name.startswith("dbt")]
print(json.dumps(found))
spark.stop()
"""


def python(code: str, *args: str, path: str) -> str:
    env = {**os.environ, "PYTHONPATH": path}
    call = [sys.executable, "-c", code, *args]
    done = subprocess.run(call, env=env, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return what a session of plain Spark finds of tables that another process wrote."""
    folder = str(tmp_path_factory.mktemp("indexed"))
    python(WRITER, folder, str(ROWS), str(BUCKETS), path=str(ROOT))
    answer: dict[str, Any] = json.loads(python(READER, folder, path="").splitlines()[-1])
    return answer


@pytest.mark.parametrize("kind", ["built", "appended", "merged"])
def test_plain_spark_needs_no_shuffle_and_reads_one_bucket(found: dict[str, Any], kind: str) -> None:
    answer, rows = found[kind], ROWS + (0 if kind == "built" else 300)
    assert [answer[name]["shuffles"] for name in ("both", "groups", "one")] == [0, 0, 1]
    assert answer["both"]["rows"] == answer["one"]["rows"]
    assert answer["groups"]["rows"] == [[rows - number, 1] for number in (1, 2, 3)]
    assert answer["counted"] == [[False, rows]]
    assert {*answer["found"]} == {1}
    assert max(answer["keys"]) <= 1.1 * answer["all"] / BUCKETS
    assert min(answer["keys"]) >= 0.9 * answer["all"] / BUCKETS, "a bucket is there, in all its files"
