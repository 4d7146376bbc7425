"""A task that writes is run twice at a time, on two workers: each row is there once, and no file too many."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.servers import standalone
from tests.cluster.test_cluster import SPECULATION

pytestmark = pytest.mark.slow

FILES = 6
"""As many tasks write; no other stage has so many."""

BUILD = """
import json, os, signal, sys, threading, time
from pathlib import Path
from dbt_zorder.adapter.session.open import open_session
from dbt_zorder.spark.catalog import TableName, describe
from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.tables.parquet.build import build
from dbt_zorder.request import BuildRequest
from tests.support import checksum

settings, tasks, till_it_ends, parts = json.loads(sys.argv[1])
spark = open_session(settings, ".")
sc, jvm = spark.sparkContext, spark._jvm
store = sc._jsc.sc().statusStore()


def writing():
    # of each task that writes: which one, whether it is run besides another, how it stands, and where
    sc._jsc.sc().listenerBus().waitUntilEmpty()
    found = store.stageList(None, False, False, sc._gateway.new_array(jvm.double, 0), jvm.java.util.ArrayList())
    for stage in map(found.apply, range(found.size())):
        if stage.numTasks() == tasks:
            runs = store.taskList(stage.stageId(), stage.attemptId(), 1000)
            for run in map(runs.apply, range(runs.size())):
                yield run.index(), run.speculative(), run.status(), run.executorId()


def process(executor):
    words = ["CoarseGrainedExecutorBackend", "--executor-id", executor, sc.applicationId]
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            arguments = (folder / "cmdline").read_bytes().decode().split("\\0")
        except OSError:
            continue
        if all(any(part == word or part.endswith("." + word) for part in arguments) for word in words):
            return int(folder.name)


def slow_down():
    # one worker gets a tenth of the time, all but stopped: it still serves what it has shuffled
    while not {"SUCCESS", "RUNNING"} <= {run[2] for run in writing()}:
        time.sleep(0.05)
    pid = process(next(run[3] for run in writing() if run[2] == "RUNNING"))
    until = time.monotonic() + 120
    while time.monotonic() < until:
        os.kill(pid, signal.SIGSTOP)
        try:
            time.sleep(0.45)
            second = [run for run in writing() if run[1]]
        finally:
            os.kill(pid, signal.SIGCONT)
        if any(run[2] == "SUCCESS" or not till_it_ends for run in second):
            break
        time.sleep(0.05)


threading.Thread(target=slow_down, daemon=True).start()
# hard to compress, so that a task takes its time
long = "concat_ws('', transform(sequence(1, 60), i -> sha2(string(id * 100 + i), 256)))"
query = f"SELECT id, pmod(hash(id), 6000) AS a, {long} AS t, id % 2 AS p FROM range(6000)"
spark.sql(f"CREATE TABLE source USING parquet AS {query}")
table, options = TableName("default", "twice"), {"compression": "zstd", "parquet.compression.codec.zstd.level": "19"}
spec = LayoutSpec(by=["a"], files=tasks // (2 if parts else 1), partition_by=parts)
done = build(spark, spark.table("source"), BuildRequest(table, spec, options=options, in_memory=0))
until = time.monotonic() + 60
while any(run[2] == "RUNNING" for run in writing()) and time.monotonic() < until:
    time.sleep(0.1)
time.sleep(2)  # what a task that was asked to end may still do
root = describe(spark, table).location.removeprefix("file:")
found = [os.path.relpath(os.path.join(folder, one), root) for folder, _, ones in os.walk(root) for one in ones]
sums = [checksum(spark.table(one).select("id", "a", "t", "p")) for one in ("source", "twice")]
print(json.dumps({"runs": list(writing()), "found": found, "sums": sums}))
"""


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with standalone(tmp_path_factory.mktemp("standalone")) as address:
        yield address


@pytest.mark.parametrize(
    ("till_it_ends", "parts"),
    [(False, []), (True, ["p"])],
    ids=["slow until the second begins", "slow until the second ends"],
)
def test_a_task_that_is_run_twice_writes_its_rows_once(
    master: str, tmp_path: Path, till_it_ends: bool, parts: list[str]
) -> None:
    settings = {
        "spark.master": master,
        "spark.executor.memory": "512m",
        "spark.sql.shuffle.partitions": "3",
        **SPECULATION,
    }
    done = subprocess.run(
        [sys.executable, "-c", BUILD, json.dumps([settings, FILES, till_it_ends, parts])],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    printed: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    second = [index for index, besides, _, _ in printed["runs"] if besides]
    attempts = Counter(index for index, *_ in printed["runs"])
    assert second, "no task was run twice"
    assert all(attempts[index] >= 2 for index in second)
    ended = Counter(index for index, _, status, _ in printed["runs"] if status == "SUCCESS")
    assert ended == Counter(range(FILES)), "of each task one attempt counts"
    if till_it_ends:  # the first attempt is then the one that is not to count
        assert any(besides and status == "SUCCESS" for _, besides, status, _ in printed["runs"])
    source, built = printed["sums"]
    assert source == built
    assert source[0] == 6000
    rows = [path for path in printed["found"] if fnmatch(Path(path).name, "part-*.parquet")]
    assert len(rows) == FILES
    sums = [str(Path(path).with_name(f".{Path(path).name}.crc")) for path in rows]
    allowed = ["_SUCCESS", "._SUCCESS.crc", "_zorder_*", *rows, *sums]
    assert not [path for path in printed["found"] if not any(fnmatch(path, one) for one in allowed)]
