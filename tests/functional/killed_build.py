"""Build a table in a process that is killed at a given step; run by test_kill.py, one process a step.

Usage: killed_build.py SESSION_DIR ROWS [STEP]. Prints rows and checksum of the table that is there, builds a version,
and prints those of it, unless the process kills itself before STEP (``mid-write``: while files are written).
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from dbt_zorder.adapter.session import open_session
from dbt_zorder.catalog import TableName
from dbt_zorder.layout.plan import LayoutSpec
from dbt_zorder.table import build as module
from tests.support import checksum

TABLE = TableName("default", "victim")
SETTINGS = {"spark.sql.shuffle.partitions": "2", "spark.master": "local[2]"}


def die(*_: Any, **__: Any) -> None:
    os.killpg(os.getpgid(0), signal.SIGKILL)  # the JVM too


def die_while_writing(root: Path, known: set[Path]) -> None:
    while not [path for path in root.rglob("*.parquet") if path not in known]:
        time.sleep(0.001)
    die()


def main(directory: str, rows: int, step: str) -> None:
    spark = open_session(SETTINGS, directory)
    show(spark)
    if step == "mid-write":
        root = Path(directory)
        known = set(root.rglob("*.parquet"))
        write = module.write_data

        def watched(*args: Any) -> None:
            threading.Thread(target=die_while_writing, args=(root, known), daemon=True).start()
            write(*args)

        setattr(module, "write_data", watched)  # noqa: B010
    elif step:
        setattr(module, step, die)
    spec = LayoutSpec(by=["id", "a"], files=4)
    frame = spark.sql(f"SELECT id, pmod(hash(id), 1000) AS a, repeat('x', 50) AS pad FROM range({rows})")
    module.build(spark, frame, module.BuildRequest(TABLE, spec, keep_versions=1, grace_hours=0))
    show(spark)
    spark.stop()


def show(spark: SparkSession) -> None:
    found = checksum(spark.table(TABLE.sql)) if spark.catalog.tableExists(TABLE.sql) else (0, 0)
    print("RESULT", *found, flush=True)  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else "")
