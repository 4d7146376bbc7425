"""One project on every kind of Spark that the adapter reaches: ``make cluster-test``.

Each runs in a process of its own, because a process has one session.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.servers import Server, connect_and_thrift, standalone

pytestmark = pytest.mark.slow
needs_client = pytest.mark.skipif(find_spec("grpc") is None, reason="PySpark is here without its client of Connect")

EVENTS = """
{{ config(materialized='table', zorder_by=['id', 'a'], zorder_files=4) }}
select id, pmod(hash(id), 100) as a, cast(id % 3 as string) as kind from range(4000)
"""
LOG = """
{{ config(materialized='incremental', zorder_by=['id', 'a'], zorder_files=2) }}
select id + {{ var('from') }} as id, a from {{ ref('events') }} where id < 500
"""
PARTED = """
{{ config(materialized='incremental', incremental_strategy='insert_overwrite', partition_by=['kind'],
          zorder_by=['id', 'a'], zorder_files=2, file_format='parquet') }}
select id + {{ var('from') }} as id, a, kind from {{ ref('events') }}
{% if is_incremental() %} where kind = '1' {% endif %}
"""
PYTHON = """
def model(dbt, session):
    dbt.config(materialized="table", zorder_by=["a", "id"], zorder_files=2)
    return dbt.ref("events").where("kind = '2'")
"""
CURVED = """
{{ config(materialized='table', zorder_by=['id', 'a'], zorder_files=3, zorder_curve='hilbert', zorder_bloom=['id']) }}
select * from {{ ref('events') }}
"""
PRUNED = "select * from {{ zorder_scan(ref('events'), 'id < 100') }}"
SEED = "code,name\n1,one\n2,\n3,three\n"
SCHEMA = """
models:
  - name: events
    data_tests: [{zorder_sound: {arguments: {made: 2}}}]
    columns: [{name: id, data_tests: [not_null]}]
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    files = {
        "dbt_project.yml": "name: where_it_runs\nprofile: where\nflags: {send_anonymous_usage_stats: false}\n"
        "seeds: {+zorder_by: code}\nvars: {from: 0}\n",
        "models/events.sql": EVENTS,
        "models/log.sql": LOG,
        "models/parted.sql": PARTED,
        "models/python.py": PYTHON,
        "models/curved.sql": CURVED,
        "models/pruned.sql": PRUNED,
        "models/schema.yml": SCHEMA,
        "seeds/codes.csv": SEED,
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "50ms",
    "spark.speculation.multiplier": "1.01",
    "spark.speculation.quantile": "0.1",
    "spark.speculation.minTaskRuntime": "1ms",
    "spark.speculation.efficiency.enabled": "false",
}
"""Under which Spark runs any task twice that is not among the first to end, also one that goes through many rows."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with connect_and_thrift(tmp_path_factory.mktemp("server")) as ports:
        yield ports


def dbt(project: Path, target: dict[str, Any], *args: str, fails: bool = False) -> str:
    target = {"type": "spark_zorder", "schema": "where_it_runs", "threads": 2, **target}
    profile = {"where": {"target": "dev", "outputs": {"dev": target}}}
    (project / "profiles.yml").write_text(json.dumps(profile))
    env = {key: value for key, value in os.environ.items() if not key.startswith(("DBT_", "SPARK_"))}
    done = subprocess.run(
        [sys.executable, "-c", "from dbt.cli.main import cli; cli()", "--no-use-colors", *args, "--profiles-dir", "."],
        cwd=project,
        env={**env, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert (done.returncode != 0) is fails, done.stdout[-6000:] + done.stderr[-2000:]
    return " ".join(done.stdout.split())


def check(project: Path, target: dict[str, Any], said: str, without: str = "") -> None:
    """Build twice, read pruned, ask and verify; without one of the models, which the method does not run."""
    if without:
        (project / "models" / f"{without}.py").unlink()
    assert "[zorder: 4 files" in dbt(project, target, "build")
    assert said in dbt(project, target, "--log-level", "debug", "debug")
    dbt(project, target, "run", "--select", "log", "parted", "--vars", "{from: 10000}")
    names = ("log", "parted", "python", "curved", "pruned", "codes")
    sums = {name: "code" if name == "codes" else "id" for name in names if name != without}
    counts = [f"select '{name}', count(*), sum({of}) from {{{{ ref('{name}') }}}}" for name, of in sums.items()]
    shown = dbt(project, target, "show", "--limit", "10", "--inline", " union all ".join(counts))
    ones = sum(range(1, 4000, 3)) + 10_000 * len(range(1, 4000, 3))
    others = sum(range(4000)) - sum(range(1, 4000, 3))
    for line in (
        f"log | 1000 | {2 * sum(range(500)) + 10_000 * 500}",
        f"parted | 4000 | {ones + others}",
        f"python | {len(range(2, 4000, 3))} | {sum(range(2, 4000, 3))}",
        f"curved | 4000 | {sum(range(4000))}",
        f"pruned | 100 | {sum(range(100))}",
        "codes | 3 | 6",
    ):
        assert line in shown or line.split(" ")[0] == without, shown
    explained = dbt(project, target, "run-operation", "zorder_explain", "--args", '{model: events, where: "id < 100"}')
    assert "`id` < 100" in explained
    assert dbt(project, target, "run-operation", "zorder_verify").count("listing, stats and footers agree") == len(
        names
    ) - bool(without)


def test_a_standalone_cluster(project: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    with standalone(tmp_path_factory.mktemp("standalone")) as address:
        settings = {"spark.master": address, "spark.executor.memory": "512m", "spark.sql.shuffle.partitions": "3"}
        settings |= SPECULATION
        check(project, {"server_side_parameters": settings}, "Connection test: [OK")


@needs_client
def test_spark_connect(project: Path, server: Server) -> None:
    target = {"spark_remote": f"sc://localhost:{server.connect}", "schema": "by_connect"}
    check(project, target, f"spark_remote: sc://localhost:{server.connect}")


@needs_client
def test_each_address_has_a_session_of_its_own(server: Server) -> None:
    code = """
import sys
from dbt_zorder.adapter.session.open import open_session
one, other = (open_session({}, ".", f"sc://{host}:{sys.argv[1]}") for host in ("localhost", "127.0.0.1"))
assert one is not other and open_session({}, ".", f"sc://localhost:{sys.argv[1]}") is one
one.sql("SET spark.sql.shuffle.partitions = 7")
print(one.conf.get("spark.sql.shuffle.partitions"), other.conf.get("spark.sql.shuffle.partitions"))
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(server.connect)], capture_output=True, text=True, timeout=200, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.split()[0] == "7"
    assert done.stdout.split()[1] != "7"


@needs_client
def test_a_server_that_is_started_anew_is_found_again(tmp_path: Path) -> None:
    code = """
import sys
from dbt_zorder.adapter.session.open import open_session
from dbt_zorder.adapter.messages.spark_errors import short_message
from dbt_zorder.spark.catalog import TableName
from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.tables.parquet.build import build
from dbt_zorder.request import BuildRequest
ntz = {"spark.sql.timestampType": "TIMESTAMP_NTZ"}  # Hive refuses what Spark then writes for a TIMESTAMP
def run():
    spark = open_session(ntz, ".", sys.argv[1])
    for rows in (10, 20):
        query = spark.sql(f"SELECT id, current_timestamp() AS at FROM range({rows})")
        build(spark, query, BuildRequest(TableName("default", "ntz"), LayoutSpec(by=["id", "at"])))
    print(spark.table("default.ntz").count(), spark.table("default.ntz__zorder_stats").count(), flush=True)
    return spark
old = run()
input()
try:
    old.sql("SELECT 1").collect()
except Exception as exc:
    print(short_message(exc), flush=True)
assert run() is not old
"""
    with contextlib.ExitStack() as stack:
        with connect_and_thrift(tmp_path) as server:
            address = f"sc://localhost:{server.connect}"
            command = [sys.executable, "-c", code, address]
            pipe = subprocess.PIPE
            run = stack.enter_context(
                subprocess.Popen(command, text=True, stdin=pipe, stdout=pipe, stderr=subprocess.STDOUT)
            )
            assert run.stdout is not None
            for line in run.stdout:
                if line.strip() == "20 1":
                    break
            else:
                pytest.fail("the first run has failed")
        with connect_and_thrift(tmp_path, server):
            output, _ = run.communicate("\n", timeout=200)
    assert run.returncode == 0, output[-3000:]
    assert "was started anew and does not know this run's session" in output
    assert output.splitlines()[-1] == "20 1"


@needs_client
def test_thrift_with_spark_connect_beside_it(project: Path, server: Server) -> None:
    pytest.importorskip("pyhive.hive")
    remote = f"sc://localhost:{server.connect}"
    target = {"method": "thrift", "host": "localhost", "port": server.thrift, "user": "dbt", "schema": "by_thrift"}
    check(project, {**target, "spark_remote": remote}, f"spark_remote: {remote}")


BIG = """
{{ config(materialized='table', zorder_by=['a', 's'], zorder_files=16, zorder_stats_columns=['at', 'x']) }}
select id, cast(pmod(hash(id), 5000) as int) as a, timestamp_seconds(1700000000 + pmod(hash(id, 3), 10000000)) as at,
    if(id % 50 = 0, null, concat('k', lpad(cast(pmod(hash(id, 7), 3000) as string), 5, '0'))) as s,
    if(id % 70 = 0, double('nan'), pmod(hash(id, 5), 1000) / 7.0D) as x
from range(100000)
{% if var('fails', false) %} where if(id = 99999, raise_error('no good'), true) {% endif %}
"""
BIG_TESTS = """
models:
  - name: big
    columns:
      - {name: a, data_tests: [{zorder_clustered: {arguments: {at_most: 0.3}}}]}
      - {name: s, data_tests: [{zorder_clustered: {arguments: {at_most: 0.3}}}]}
    data_tests: [{zorder_sound: {arguments: {made: 20, predicates: ["a = 17", "s = 'k00017'", "x > 100"]}}}]
"""
MERGED = """
{{ config(materialized='incremental', incremental_strategy='merge', unique_key='id', zorder_by='id') }} select 1 as id
"""


@needs_client
def test_thrift_alone(project: Path, server: Server) -> None:
    pytest.importorskip("pyhive.hive")
    target = {"method": "thrift", "host": "localhost", "port": server.thrift, "user": "dbt", "schema": "by_sql"}
    target["poll_interval"] = 1
    check(project, target, "write and prune: 4 files written", without="python")
    for name, text in {"big.sql": BIG, "big.yml": BIG_TESTS, "merged.sql": MERGED, "python.py": PYTHON}.items():
        (project / "models" / name).write_text(text)
    assert "point query on a reads 4 of 16, s 4 of 16" in dbt(project, target, "build", "--select", "big")
    count = "select count(*), count(distinct a), sum(id) from {{ ref('big') }}"
    before = dbt(project, target, "show", "--inline", count)
    assert f"| {sum(range(100_000))} |" in before
    for model, why in (("big", "no good"), ("merged", "need a Spark session"), ("python", "need a Spark session")):
        said = dbt(project, target, "run", "--select", model, "--vars", "{fails: true}", fails=True)
        assert why in said, said
    assert (
        before.rpartition("inline node")[2]
        == dbt(project, target, "show", "--inline", count).rpartition("inline node")[2]
    )
    listed = dbt(
        project, target, "show", "--inline", "select count(*) as left from {{ target.schema }}.big__zorder_stats"
    )
    assert "| 16 |" in listed
