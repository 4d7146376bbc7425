"""Processes of their own on one server: two at once, and those that are killed at every step.

CI kills at one step of each kind; ``make servers-test`` at all of them.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.spark.catalog import TableName
from dbt_zorder.tables.parquet.operations.verify import verify_table
from tests.faults import points, struck_batch, struck_vacuum
from tests.faults.test_kill import ROOT, kill_builds
from tests.faults.test_kill_batch import MOVES, kill_batches
from tests.faults.test_kill_vacuum import kill_vacuums
from tests.servers import racing
from tests.support import checksum
from tests.unit.tables.parquet.batches import assert_sound, made, rows

ON_DISK_ALONE = {"mid write_data", "mid collect_old"}
"""Points that look into the folder of the versions."""


@pytest.fixture(scope="module")
def elsewhere(spark: SparkSession, server_settings: Mapping[str, str]) -> Mapping[str, str]:
    """Return the settings of another process on the server, with the jars that this one has downloaded."""
    jars = spark.sparkContext.getConf().get("spark.jars", "")
    settings = {key: value for key, value in server_settings.items() if not key.startswith("spark.jars")}
    return {**settings, "spark.driver.memory": "1g", **({"spark.jars": jars} if jars else {})}


@pytest.fixture
def whole(request: pytest.FixtureRequest) -> bool:
    """Return whether this run is to kill at every step."""
    return "not slow" not in request.config.getoption("markexpr", "")


def test_builds_that_are_killed(server: str, elsewhere: Mapping[str, str], tmp_path: Path, whole: bool) -> None:
    names = [name for name in points.POINTS if server == "metastore" or name not in ON_DISK_ALONE]
    chain = [(name, "plain" if number % 2 else "parted") for number, name in enumerate(names)]
    kill_builds(tmp_path, chain if whole else [("mid publish", "parted")], elsewhere)


def test_batches_that_are_killed(elsewhere: Mapping[str, str], tmp_path: Path, whole: bool) -> None:
    every = [(point, kind) for point in struck_batch.POINTS for kind in struck_batch.KINDS]
    chain = [(point, kind) for point, kind in every if int([*point.split(":"), "0"][2]) < MOVES[kind]]
    kill_batches(tmp_path, chain if whole else [("journal:move:1", "overwrite")], elsewhere)


def test_vacuums_that_are_killed(elsewhere: Mapping[str, str], tmp_path: Path, whole: bool) -> None:
    chain = [(point, "plain" if number % 2 else "parted") for number, point in enumerate(struck_vacuum.POINTS)]
    kill_vacuums(tmp_path, chain if whole else [("files:_delete:1", "plain")], elsewhere)


def test_two_processes_at_once(
    spark: SparkSession, server: str, elsewhere: Mapping[str, str], tmp_path: Path, database: str
) -> None:
    if server == "s3":
        pytest.skip("its sessions have catalogs of their own")
    shared = TableName(database, "shared")
    made(spark, shared, rows(0, 100))
    with contextlib.ExitStack() as stack:
        running = []
        for number in range(2):
            command = [sys.executable, "-m", "tests.servers.racing", str(tmp_path / str(number)), str(number), database]
            running.append(
                stack.enter_context(
                    subprocess.Popen(
                        command,
                        cwd=ROOT,
                        env={**os.environ, "PYTHONPATH": str(ROOT), "STRUCK_SETTINGS": json.dumps(dict(elsewhere))},
                        stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE,
                        stderr=(tmp_path / f"{number}.log").open("w"),
                        text=True,
                    )
                )
            )
            stack.callback(running[-1].kill)
        for one in running:
            assert one.stdout is not None
            assert next((line for line in one.stdout if '"ready"' in line), None), "it did not start"
        for one in running:
            assert one.stdin is not None
            one.stdin.write("\n")
            one.stdin.flush()
        for number, one in enumerate(running):
            assert one.wait(400) == 0, (tmp_path / f"{number}.log").read_text()[-3000:]
    spark.sql(f"REFRESH TABLE {shared.sql}")
    end = racing.ids(2, 0)[0]
    wanted = spark.sql(f"{rows(0, 100)} UNION ALL {rows(racing.FIRST, end)}")
    assert checksum(spark.table(shared.sql).select(*wanted.columns)) == checksum(wanted)
    for name in ("shared", "own_0", "own_1"):
        table = TableName(database, name)
        assert list(verify_table(spark, table).findings) == []
        assert_sound(spark, table)
    assert spark.table(f"{database}.own_0").count() == 300
