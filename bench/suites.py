"""Benchmarks that bring their own data and queries, and their tables in each format."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyspark
from pyspark.sql import DataFrame, SparkSession

from bench.contenders import OUTPUT, SNAPPY, Task, live_files, path_of
from bench.datasets import DATA
from bench.lakes import Lake
from bench.measure import SETTINGS
from bench.roster import SIZED
from dbt_zorder.adapter.session.format_packages import format_settings
from dbt_zorder.adapter.session.open import open_session
from dbt_zorder.spark.catalog import TableName
from dbt_zorder.stats.table_state import FORMATS
from dbt_zorder.tables.save import save_table

CONTENDERS = ("zorder", "parquet", "delta", "iceberg")
"""Layouts of the fact tables: ours, Parquet in the order of the generator, and each format's own Z-order."""

_BUILT = "bench.built"
"""Property of a table of Delta Lake or Iceberg whose layout is finished."""


@dataclass(frozen=True)
class Fact:
    """Layout of a fact table.

    Attributes:
        keys: columns to cluster by.
        share: number of its files beside that of the largest facts.
        weights: importance of a filter on each key; equal if empty.
    """

    keys: list[str]
    share: float = 1.0
    weights: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Suite:
    """Tables and queries of a benchmark.

    Attributes:
        name: for files and schemas.
        facts: layouts of its fact tables, by name; all other tables are plain.
        generate: writes the tables of a scale into a folder, unless they are there, and returns queries by number.
    """

    name: str
    facts: Mapping[str, Fact]
    generate: Callable[[Path, float], Mapping[int, str]]

    def data(self, scale: float) -> Path:
        """Return the folder of the generated tables of a scale."""
        return DATA / f"{self.name}_{scale:g}"


@dataclass(frozen=True)
class Tables:
    """Tables of a suite in one layout.

    Attributes:
        suite: their benchmark.
        contender: one of ``CONTENDERS``.
        scale: scale of their rows.
        files: number of files of the largest facts.
    """

    suite: Suite
    contender: str
    scale: float
    files: int

    @property
    def schema(self) -> str:
        """Return the schema of the tables."""
        return f"{self.suite.name}_{self.scale:g}_{self.files}_{self.contender}".replace(".", "_").replace("-", "_")

    @property
    def file_format(self) -> str:
        """Return the format of every table."""
        return self.contender if self.contender in FORMATS else "parquet"

    def files_of(self, fact: Fact) -> int:
        """Return the number of files of a fact table."""
        return max(1, round(self.files * fact.share))

    def open_session(self, more: Mapping[str, str] | None = None, place: str = "") -> SparkSession:
        """Return a session for this layout, which needs a process of its own.

        Args:
            more: further settings.
            place: where the tables lie, if not on the local disk.
        """
        user = {"spark.driver.memory": "6g", "spark.sql.shuffle.partitions": "4", **SETTINGS, **(more or {})}
        settings = format_settings([self.file_format][: self.contender in FORMATS], user, pyspark.__version__)
        return open_session(settings, str(OUTPUT / f"session_{self.suite.name}_{self.contender}{place}"))

    def build(self, spark: SparkSession, folder: Path) -> dict[str, int]:
        """Build the tables that are not yet there, and return the number of files of each fact table.

        Args:
            spark: their session, which uses their schema from then on.
            folder: generated tables.
        """
        spark.sql(f"CREATE SCHEMA IF NOT EXISTS {self.schema}")
        for path in sorted(folder.glob("*.parquet")):
            fact = self.suite.facts.get(path.stem)
            if fact is not None and self.contender in FORMATS:
                self._build_lake(spark, path, fact)
            elif not spark.catalog.tableExists(f"{self.schema}.{path.stem}"):
                self._write(spark.read.parquet(str(path)), path.stem, fact)
        spark.sql(f"USE {self.schema}")
        if self.contender in FORMATS:
            tables = {name: TableName(self.schema, name) for name in self.suite.facts}
            return {name: len(live_files(spark, self.contender, table)) for name, table in tables.items()}
        return {name: len(spark.table(name).inputFiles()) for name in self.suite.facts}

    def _write(self, rows: DataFrame, name: str, fact: Fact | None) -> None:
        table = f"{self.schema}.{name}"
        if fact is None:
            rows.write.saveAsTable(table, format=self.file_format)
        elif self.contender == "zorder":
            save_table(rows, table, fact.keys, files=self.files_of(fact), weights=fact.weights or None)
        else:
            rows.repartitionByRange(self.files_of(fact), rows.columns[0]).write.saveAsTable(table, format="parquet")

    def _build_lake(self, spark: SparkSession, source: Path, fact: Fact) -> None:
        table = TableName(self.schema, source.stem)
        properties = f"SHOW TBLPROPERTIES {table.sql}"
        if spark.catalog.tableExists(table.sql) and any(
            row["key"] == _BUILT for row in spark.sql(properties).collect()
        ):
            return
        lake = _lake(self.file_format, Task(fact.keys, self.files_of(fact), spark), table)
        for _ in range(2):  # the second time by a larger size, if the first one made too many files
            lake.clear()
            lake.write(source)
            lake.size = sum(path.stat().st_size for path in lake.paths()) // lake.task.files
            lake.lay_out()
            if len(lake.paths()) <= 1.1 * lake.task.files:
                break
            lake.learn()
        spark.sql(f"ALTER TABLE {table.sql} SET TBLPROPERTIES ('{_BUILT}' = 'true')")


@dataclass
class _FactTable(Lake):
    """A fact table whose layout is the format's own Z-order.

    Attributes:
        named: its name.
    """

    named: TableName | None = None

    @property
    def table(self) -> TableName:
        """Return its name."""
        assert self.named is not None
        return self.named

    def clear(self) -> None:
        """Drop the table, and files of a build that failed."""
        super().clear()
        where = self.spark.sql(f"DESCRIBE SCHEMA {self.table.schema}").where("info_name = 'Location'").collect()
        shutil.rmtree(path_of(where[0][1]) / self.table.identifier, ignore_errors=True)

    def rows(self, source: Path) -> DataFrame:
        """Return the rows in their own order of columns."""
        return self.spark.read.parquet(str(source))


def _lake(file_format: str, task: Task, table: TableName) -> Lake:
    if file_format == "delta":
        return _FactTable(task, table.identifier, "delta", settings=SIZED, named=table)
    sized = {"target-file-size-bytes": "{size}"}
    return _FactTable(task, table.identifier, "iceberg", SNAPPY, sized, named=table)


def numbers(given: Sequence[int] | None, asked: Mapping[int, str]) -> dict[int, str]:
    """Return the queries of the given numbers, or all if none is given.

    Raises:
        SystemExit: a number is not one of a query.
    """
    missing = sorted(set(given or ()) - set(asked))
    if missing:
        msg = f"There is no query {', '.join(map(str, missing))}; there are {min(asked)} to {max(asked)}."
        raise SystemExit(msg)
    return {number: sql for number, sql in asked.items() if not given or number in given}
