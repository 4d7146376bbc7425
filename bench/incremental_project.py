"""Measure a dbt run of 20 incremental models with ``zorder_prune`` or not: ``python -m bench.incremental_project``.

A dbt project is generated into a temporary folder. Its models read one z-ordered source of 500 files by the watermark
of dbt's documentation, ``ts > (select max(ts) from {{ this }})``. Both targets build the models once. Then each turn
appends a day to the source and runs both targets, in this process, whose Spark session is open already. The first turn
warms up, counts the bytes that Spark's tasks read, see ``COUNTED``, and the files of dbt's lines. The others are timed.
At the end the tables of both targets must have equal rows.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from dbt.cli.main import dbtRunner
from pyspark.sql import DataFrame, SparkSession
from rich.console import Console
from rich.table import Table

from bench.datasets import MILLION
from bench.figures import keep_figures
from bench.kernel_time import RESULTS
from bench.measure import COUNTED, SETTINGS, bytes_read, in_order_of, seconds
from bench.statements import Line
from dbt_zorder.adapter.session.open import open_session
from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableName
from dbt_zorder.spark.conf import settings
from dbt_zorder.tables.batch import Batch
from dbt_zorder.tables.registry import for_format

TARGETS = ("plain", "pruned")
DAYS = 500
SINCE = 100
"""Days that the models have rows of when they are first built."""

SOURCE = BuildRequest(TableName("raw", "events"), LayoutSpec(by=["ts", "customer_id"], files=500))
_DAY_ONE = "2024-01-01"
_READ = re.compile(r"`raw`\.`events`: ([\d,]+) of ([\d,]+) files are read")

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_FLAGS = {"send_anonymous_usage_stats": False}

_FILTER = """
{% if is_incremental() %} where e.ts > (select max(ts) from {{ this }})
{% else %} where e.ts >= timestamp'{{ var('since') }}' {% endif %}"""

MODELS = {
    "rows": "{{ config(incremental_strategy='append') }} select e.* from {{ source('raw', 'events') }} e"
    + _FILTER
    + " and e.region = 'region @'",
    "daily": "{{ config(incremental_strategy='append') }} select cast(e.ts as date) as day, e.region, max(e.ts) as ts, "
    "count(*) as events, sum(e.amount) as amount from {{ source('raw', 'events') }} e"
    + _FILTER.replace("max(ts)", "coalesce(max(ts), timestamp'1900-01-01')")
    + " and e.customer_id % 5 = @ group by all",
    "joined": "{{ config(incremental_strategy='append') }} select e.id, e.ts, c.name, e.amount "
    "from {{ source('raw', 'events') }} e join {{ source('raw', 'customers') }} c on e.customer_id = c.customer_id"
    + _FILTER
    + " and c.tier = @",
    "clustered": "{{ config(incremental_strategy='append', zorder_by=['customer_id', 'ts'], zorder_files=4) }} "
    "select e.id, e.ts, e.customer_id, e.amount from {{ source('raw', 'events') }} e" + _FILTER + " and e.id % 5 = @",
}
"""Models by their kind. Each kind has five, whose filters differ by the number in place of the sign ``@``."""


def days(spark: SparkSession, first: int, count: int, rows: int) -> DataFrame:
    """Return the source's rows of a number of days, ``rows`` each, which depend on the day alone."""
    return spark.range(first * rows, (first + count) * rows, 1, 8).selectExpr(
        "id",
        f"timestamp'{_DAY_ONE}' + make_dt_interval(id DIV {rows}, 0, 0, pmod(xxhash64(id, 1), 86400)) AS ts",
        "cast(pmod(xxhash64(id, 2), 100000) AS int) AS customer_id",
        "concat('region ', pmod(xxhash64(id, 3), 5)) AS region",
        "cast(pmod(xxhash64(id, 4), 100000) / 100 AS decimal(9, 2)) AS amount",
        "md5(string(id)) AS session",
    )


@dataclass
class Project:
    """A dbt project in a folder, and the session that its runs share with this process.

    Attributes:
        folder: of the project.
        spark: the session.
        rows: rows of a day.
        day: number of the next day.
        reads: files that dbt's lines say are read of the source, and of how many, since they were last taken.
    """

    folder: Path
    spark: SparkSession
    rows: int
    day: int = DAYS
    reads: list[tuple[int, int]] = field(default_factory=list)

    def write(self) -> None:
        """Write the project and its profile: a target each way, in a schema of its own."""
        models = self.folder / "models"
        models.mkdir(parents=True, exist_ok=True)
        for kind, text in MODELS.items():
            for number in range(5):
                (models / f"{kind}_{number}.sql").write_text(text.replace("@", str(number)))
        tables = [{"name": "events"}, {"name": "customers"}]
        _write(models / "sources.yml", {"version": 2, "sources": [{"name": "raw", "schema": "raw", "tables": tables}]})
        config = {"+materialized": "incremental", "+file_format": "parquet"}
        described = {"name": "incremental_project", "version": "1.0", "config-version": 2, "profile": "bench"}
        _write(self.folder / "dbt_project.yml", {**described, "models": config, "flags": _FLAGS})
        target: dict[str, Any] = {"type": "spark_zorder", "threads": 2, "session_dir": str(self.folder / "session")}
        target["server_side_parameters"] = _settings()
        outputs = {way: {**target, "schema": way, "zorder_prune": way == "pruned"} for way in TARGETS}
        _write(self.folder / "profiles.yml", {"bench": {"target": "plain", "outputs": outputs}})

    def build_source(self) -> None:
        """Build the source and its dimension."""
        self.spark.sql("CREATE SCHEMA IF NOT EXISTS raw")
        for_format(self.spark, SOURCE).build(days(self.spark, 0, DAYS, self.rows), SOURCE)
        self.spark.sql(
            "CREATE TABLE raw.customers USING parquet AS SELECT cast(id AS int) AS customer_id, "
            "concat('customer ', id) AS name, cast(id % 5 AS int) AS tier FROM range(100000)"
        )

    def append_day(self) -> None:
        """Append the next day to the source."""
        rows = days(self.spark, self.day, 1, self.rows)
        for_format(self.spark, SOURCE).increment(lambda: rows, SOURCE, Batch(may_rewrite=False))
        self.day += 1

    def run(self, target: str) -> None:
        """Run all models.

        Raises:
            SystemExit: a model failed.
        """
        since = self.spark.sql(f"SELECT string(date_add(date'{_DAY_ONE}', {DAYS - SINCE}))").collect()[0][0]
        place = ["--project-dir", str(self.folder), "--profiles-dir", str(self.folder)]
        given = ["run", "--quiet", "--target", target, "--vars", json.dumps({"since": since}), *place]
        result = dbtRunner(callbacks=[self._note]).invoke(given)
        if not result.success:
            results: Any = result.result
            failed = [one.message for one in results or () if one.status not in ("success", "pass")]
            msg = f"dbt run failed: {result.exception or failed}"
            raise SystemExit(msg)

    def _note(self, event: Any) -> None:
        self.reads += [(_number(read), _number(of)) for read, of in _READ.findall(_COLOURS.sub("", event.info.msg))]

    def has_equal_rows(self) -> bool:
        """Return whether each model has the same rows in both schemas."""
        sums = "SELECT count(*), sum(cast(xxhash64(*) AS decimal(38))) FROM {}.{}"
        return all(
            len({tuple(self.spark.sql(sums.format(way, f"{kind}_{number}")).collect()[0]) for way in TARGETS}) == 1
            for kind in MODELS
            for number in range(5)
        )


def _settings() -> dict[str, str]:
    return {
        "spark.driver.memory": "4g",
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.session.timeZone": "UTC",
        **SETTINGS,
    }


def _write(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=2))  # JSON is YAML


def _number(text: str) -> int:
    return int(text.replace(",", ""))


@contextmanager
def _folder(given: Path | None) -> Iterator[Path]:
    if given is not None:
        given.mkdir(parents=True, exist_ok=False)
        yield given
    else:
        with tempfile.TemporaryDirectory(prefix="incremental_project_") as made:
            yield Path(made)


def measure(project: Project, turns: int) -> list[Line]:
    """Return a line for each target: bytes and files of one run, and the median seconds of the others."""
    lines: dict[str, Line] = {way: {"target": way} for way in TARGETS}
    project.append_day()
    with settings(project.spark, COUNTED):
        for way, line in lines.items():
            before = bytes_read(project.spark)
            project.reads.clear()
            project.run(way)
            line["bytes"] = bytes_read(project.spark) - before
            files = len(project.spark.table("raw.events").inputFiles())
            line["statements_that_skip"] = len(project.reads)
            line["files"] = statistics.median([read for read, _ in project.reads] or [files])
            line["files_of"] = files
    took: dict[str, list[float]] = {way: [] for way in TARGETS}
    for turn in range(turns):
        project.append_day()
        for way in in_order_of(turn, TARGETS):
            took[way].append(seconds(partial(project.run, way)))
    equal = project.has_equal_rows()
    for way, line in lines.items():
        line.update({"seconds": round(statistics.median(took[way]), 2) if turns else "", "equal": equal})
    return list(lines.values())


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table and keep the figures as CSV."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--scale", type=float, default=1.0, help="1 is 5 million rows")
    parser.add_argument("--data", type=Path, help="new folder of the project, instead of a temporary one")
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args(arguments)
    with _folder(given.data) as folder:
        spark = open_session(_settings(), str(folder / "session"))
        project = Project(folder, spark, max(1, int(5 * MILLION * given.scale) // DAYS))
        project.write()
        project.build_source()
        for way in TARGETS:
            project.run(way)
        lines = measure(project, given.turns)
        spark.stop()
    table = Table(*lines[0], title="an incremental dbt run of 20 models")
    for line in lines:
        table.add_row(*map(str, line.values()))
    Console(width=140).print(table)
    keep_figures(lines, given.out / "incremental_project.csv")


if __name__ == "__main__":
    main()
