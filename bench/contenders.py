"""The contenders: plain files, ORDER BY and dbt-zorder. The table formats' own commands are in ``lakes``.

A contender's ``write`` writes the rows, and its ``lay_out`` is the command that users run after it. Both together are
its pipeline. A contender that clusters in one step has no ``lay_out``.
"""

from __future__ import annotations

import re
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from urllib.parse import unquote, urlparse

from deltalake import DeltaTable, QueryBuilder
from pyspark.sql import DataFrame, SparkSession

from bench.datasets import DATA, fresh, ordered
from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.pruning import scan
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableName, describe
from dbt_zorder.stats.table_state import FORMATS, state_of
from dbt_zorder.tables.batch import Batch
from dbt_zorder.tables.parquet.operations.drop import drop_table
from dbt_zorder.tables.registry import for_format

SCHEMA = "bench"
OUTPUT = DATA / "peers"
SNAPPY = {"write.parquet.compression-codec": "snappy"}
"""Iceberg's default is zstd: with Spark's own codec bytes depend on the layout alone."""

ORDER = "ORDER BY"
"""Who all others are compared with."""


@dataclass
class Task:
    """What all contenders of a session are to do.

    Attributes:
        keys: columns to cluster by.
        files: how many files the table is to have.
        session: Spark's; a contender that has none does not ask for it.
        turn: of the pipelines. Each has the columns in another order and draws another sample, see ``fresh``.
    """

    keys: list[str]
    files: int
    session: SparkSession | None = None
    turn: int = 0

    @property
    def batch_files(self) -> int:
        """Files of the same size for a tenth of the rows."""
        return max(1, self.files // 10)


@dataclass
class Contender(ABC):
    """One way to a clustered table. Rows come as a folder of Parquet files.

    Attributes:
        task: what to do.
        name: for tables and plots.
        size: bytes of a file, for those that take a size in place of a number: the mean of what ``write`` wrote.
        excess: factor of the size to ask for, by the files that earlier runs wrote.
    """

    task: Task
    name: str
    size: int = field(default=0, init=False)
    excess: float = field(default=1.0, init=False)

    @property
    def asked_size(self) -> int:
        """The size to ask for, in bytes."""
        return int(self.size * self.excess)

    @property
    def spark(self) -> SparkSession:
        """The session."""
        assert self.task.session is not None
        return self.task.session

    def rows(self, source: Path) -> DataFrame:
        """Return rows that came."""
        return fresh(self.spark.read.parquet(str(source)), self.task.turn)

    @abstractmethod
    def clear(self) -> None:
        """Remove the table, which all contenders create anew; not measured."""

    def learn(self) -> None:
        """Ask for a larger size from now on if a run wrote more files than wanted."""
        self.excess *= max(1.0, len(self.paths()) / self.task.files)

    @abstractmethod
    def write(self, source: Path) -> None:
        """Make the table, or make it anew."""

    def lay_out(self) -> None:  # noqa: B027
        """Run the command that clusters what ``write`` has written, if that takes one."""

    def again(self) -> None:
        """Do what is done regularly, when no new rows have come."""
        self.lay_out()

    @abstractmethod
    def add(self, source: Path) -> None:
        """Append to the table, and leave it clustered as its users would."""

    @abstractmethod
    def paths(self) -> list[Path]:
        """Return the data files that a reader of the table would open."""

    @abstractmethod
    def count(self, where: str) -> int:
        """Count the rows of a filter, as a reader of this table would ask for them."""

    def ways_to_ask(self) -> Mapping[str, Callable[[str], int]]:
        """Return ``count``, and what else a reader may do, by the name of its measure."""
        return {"query": self.count}


class Folder(Contender):
    """A Parquet table of Spark's own, with the rows as they come: a plain copy."""

    @property
    def folder(self) -> Path:
        """Where it lies."""
        return OUTPUT / self.table.identifier

    @property
    def table(self) -> TableName:
        """Its name."""
        return table_of(self.name)

    def clear(self) -> None:
        """Drop the table and its files."""
        self.spark.sql(f"DROP TABLE IF EXISTS {self.table.sql}")
        shutil.rmtree(self.folder, ignore_errors=True)

    def write(self, source: Path) -> None:
        """Create the table, as CREATE TABLE AS SELECT does."""
        writer = self.laid_out(self.rows(source), self.task.files).write.mode("overwrite")
        writer.option("path", str(self.folder)).saveAsTable(self.table.sql)

    def add(self, source: Path) -> None:
        """Insert files of the same size."""
        self.laid_out(self.rows(source), self.task.batch_files).write.mode("append").saveAsTable(self.table.sql)

    def paths(self) -> list[Path]:
        """List the folder."""
        return sorted(self.folder.glob("*.parquet"))

    def count(self, where: str) -> int:
        """Filter."""
        return self.spark.table(self.table.sql).where(where).count()

    def laid_out(self, rows: DataFrame, files: int) -> DataFrame:
        """Leave the rows as they are."""
        return rows


class OrderBy(Folder):
    """ORDER BY as a user writes it for a number of files."""

    def laid_out(self, rows: DataFrame, files: int) -> DataFrame:
        """Sort rows and cut them into files."""
        return ordered(rows, files, self.task.keys)


@dataclass
class Ours(Contender):
    """What ``dbt run`` does for a model with ``zorder_by``, all but dbt itself."""

    file_format: str = "parquet"

    @property
    def request(self) -> BuildRequest:
        """What a model says."""
        spec = LayoutSpec(by=self.task.keys, files=self.task.files, seed=self.task.turn)
        table = TableName(SCHEMA, f"ours_{self.file_format}")
        properties = SNAPPY if self.file_format == "iceberg" else {}
        return BuildRequest(
            table, spec, properties=properties, keep_versions=0, grace_hours=0, file_format=self.file_format
        )

    def clear(self) -> None:
        """Drop the table."""
        if self.file_format in FORMATS:
            self.spark.sql(f"DROP TABLE IF EXISTS {self.request.table.sql}")
        else:
            drop_table(self.spark, self.request.table)

    def write(self, source: Path) -> None:
        """Build."""
        for_format(self.spark, self.request).build(self.rows(source), self.request)

    def again(self) -> None:
        """Run as an incremental model whose filter finds nothing new."""
        key = self.task.keys[0]
        rows = self.spark.table(self.request.table.sql)
        self._increment(rows.where(f"{key} > (SELECT max({key}) FROM {self.request.table.sql})"))

    def add(self, source: Path) -> None:
        """Run as an incremental model."""
        self._increment(self.rows(source))

    def paths(self) -> list[Path]:
        """List the version that is served, or ask the format."""
        if self.file_format in FORMATS:
            return live_files(self.spark, self.file_format, self.request.table)
        info = describe(self.spark, self.request.table)
        assert info is not None
        return sorted(path_of(info.location).glob("*.parquet"))

    def count(self, where: str) -> int:
        """Ask by our helper, or by plain SQL where the format skips by itself."""
        if self.file_format in FORMATS:
            return self._count_plainly(where)
        return scan(self.spark, self.request.table.sql, where).count()

    def ways_to_ask(self) -> Mapping[str, Callable[[str], int]]:
        """Add plain SQL, which opens every file of a Parquet table and skips row groups inside, or Delta's others."""
        more: Mapping[str, Callable[[str], int]] = {}
        if self.file_format == "parquet":
            more = {"plain_query": self._count_plainly}
        elif self.file_format == "delta":
            more = without_spark(self.spark, self.request.table)
        return {**super().ways_to_ask(), **more}

    def _count_plainly(self, where: str) -> int:
        return self.spark.table(self.request.table.sql).where(where).count()

    def _increment(self, rows: DataFrame) -> None:
        for_format(self.spark, self.request).increment(lambda: rows, self.request, Batch())


def without_spark(spark: SparkSession, table: TableName) -> dict[str, Callable[[str], int]]:
    """Return how a Delta table is asked by delta-rs, the reader of its own contender: then layouts alone differ."""
    info = describe(spark, table)
    assert info is not None
    return {"delta_rs_query": partial(count_by_delta_rs, str(path_of(info.location)))}


def count_by_delta_rs(folder: str, where: str) -> int:
    """Count the rows of a filter on a Delta table by DataFusion."""
    builder = QueryBuilder().register("t", DeltaTable(folder))
    counted = builder.execute(f"SELECT count(*) AS n FROM t WHERE {where}").read_all()
    return int(counted.column("n")[0].as_py())


def table_of(name: str) -> TableName:
    """Return the table of a contender."""
    return TableName(SCHEMA, re.sub(r"\W+", "_", name).lower())


def path_of(uri: str) -> Path:
    """Return the path of a local file or folder."""
    return Path(unquote(urlparse(uri).path))


def live_files(spark: SparkSession, file_format: str, table: TableName) -> list[Path]:
    """Return the data files of a table of Delta Lake or Iceberg."""
    rows = state_of(spark, file_format, table).stats([]).select("file_path").collect()
    return sorted(path_of(str(row[0])) for row in rows)
