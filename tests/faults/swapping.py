"""The processes of test_concurrency.py: one that swaps and reads in eight threads, and readers with own sessions.

Usage: swapping.py URI DIRECTORY swap SWAPS READS, or swapping.py URI DIRECTORY read SECONDS, where SECONDS is how long
a reader keeps what its session knows of the table. Both print a line of JSON at their end.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections import Counter
from pathlib import Path

from pyspark.sql import SparkSession

from dbt_zorder.adapter.session.open import open_session
from dbt_zorder.spark.catalog import TableName
from tests.faults.victim import KINDS, Victim
from tests.support import checksum

GRACE_SECONDS = 180
FIRST_ROWS = 1000
THREADS = 8
PAUSE_SECONDS = 0.25
"""Between two reads of a thread, or the swaps would get no processor; 200 swaps still see more than 10,000 reads."""


class Reads:
    """What a process read: how often which content, and every error."""

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()
        self.errors: list[str] = []
        self._lock = threading.Lock()

    def read(self, victim: Victim) -> None:
        """Read the whole table once."""
        try:
            key = f"{victim.kind} {checksum(victim.spark.table(victim.table.sql))}"
        except Exception as exc:
            with self._lock:
                self.errors.append(str(exc)[:1000])
        else:
            with self._lock:
                self.seen[key] += 1


def victims(spark: SparkSession) -> list[Victim]:
    return [Victim(spark, TableName("swaps", kind), kind) for kind in KINDS]


def swap(spark: SparkSession, directory: Path, swaps: int, reads: int) -> dict[str, object]:
    spark.sql(f"CREATE DATABASE swaps LOCATION '{directory / 'swaps'}'")
    tables = victims(spark)
    committed = set()
    collected = 0
    for victim in tables:
        committed.add(f"{victim.kind} {victim.expected(FIRST_ROWS)}")
        victim.build(FIRST_ROWS)
    (directory / "ready").touch()
    while len(list(directory.glob("reading*"))) < 2:
        time.sleep(0.2)
    found, done = Reads(), threading.Event()

    def work(number: int) -> None:
        while not done.is_set():
            found.read(tables[number % 2])
            done.wait(PAUSE_SECONDS)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for number in range(swaps):
        victim = tables[number % 2]
        rows = FIRST_ROWS + 1 + number
        committed.add(f"{victim.kind} {victim.expected(rows)}")
        collected += len(victim.build(rows, grace_hours=GRACE_SECONDS / 3600, keep_versions=1).collected)
    while found.seen.total() < reads:
        time.sleep(1)
    done.set()
    for thread in threads:
        thread.join()
    (directory / "stop").touch()
    return {"committed": sorted(committed), "collected": collected, "seen": found.seen, "errors": found.errors}


def read(spark: SparkSession, directory: Path, seconds: float) -> dict[str, object]:
    tables = victims(spark)
    (directory / f"reading{seconds}").touch()
    found = Reads()
    refreshed = 0.0
    while not (directory / "stop").exists():
        if time.monotonic() - refreshed >= seconds:
            refreshed = time.monotonic()
            for victim in tables:
                spark.sql(f"REFRESH TABLE {victim.table.sql}")
        for victim in tables:
            found.read(victim)
        time.sleep(PAUSE_SECONDS)
    return {"seen": found.seen, "errors": found.errors}


def main(uri: str, folder: str, role: str, *args: str) -> None:
    directory = Path(folder)
    settings = {
        "spark.hadoop.hive.metastore.uris": uri,
        "spark.master": "local[2]",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.memory": "1g",
    }
    if role == "read":
        while not (directory / "ready").exists():
            time.sleep(0.2)
    spark = open_session(settings, str(directory / f"session_{role}_{args[0]}"))
    if role == "swap":
        result = swap(spark, directory, int(args[0]), int(args[1]))
    else:
        result = read(spark, directory, float(args[0]))
    print(json.dumps(result), flush=True)  # noqa: T201
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
