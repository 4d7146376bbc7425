"""The table formats and their own commands: Delta Lake, Iceberg, Hudi, and delta-rs without Spark."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pyarrow.dataset as ds
from deltalake import DeltaTable, WriterProperties, write_deltalake
from pyspark.sql import DataFrame

from bench.contenders import OUTPUT, Contender, count_by_delta_rs, live_files, path_of, table_of, without_spark
from bench.datasets import ordered
from dbt_zorder.spark.catalog import TableName

_LIKE_SPARK = WriterProperties(compression="SNAPPY")
"""delta-rs's default is zstd: with Spark's own codec bytes depend on the layout alone."""


@dataclass
class FormatTable(Contender):
    """A table of Delta Lake or Iceberg.

    Attributes:
        file_format: what it is.
        properties: of the table.
    """

    file_format: Literal["delta", "iceberg"] = "delta"
    properties: dict[str, str] = field(default_factory=dict)

    @property
    def table(self) -> TableName:
        """Its name."""
        return table_of(self.name)

    def clear(self) -> None:
        """Drop the table."""
        self.spark.sql(f"DROP TABLE IF EXISTS {self.table.sql}")

    def paths(self) -> list[Path]:
        """Ask the format."""
        return live_files(self.spark, self.file_format, self.table)

    def count(self, where: str) -> int:
        """Filter."""
        return self.spark.table(self.table.sql).where(where).count()

    def ways_to_ask(self) -> Mapping[str, Callable[[str], int]]:
        """Add a reader of Delta tables that has no Spark."""
        more = without_spark(self.spark, self.table) if self.file_format == "delta" else {}
        return {**super().ways_to_ask(), **more}


class OrderedFormat(FormatTable):
    """ORDER BY into a table format: what the format's own statistics and log cost, whatever the order."""

    def write(self, source: Path) -> None:
        """Create the table anew."""
        writer = ordered(self.rows(source), self.task.files, self.task.keys).writeTo(self.table.sql)
        for key, value in self.properties.items():
            writer = writer.tableProperty(key, value)
        writer.using(self.file_format).create()

    def add(self, source: Path) -> None:
        """Append files of the same size."""
        ordered(self.rows(source), self.task.batch_files, self.task.keys).writeTo(self.table.sql).append()


@dataclass
class Lake(FormatTable):
    """A table that is made by CTAS and laid out by the format's own command.

    Attributes:
        settings: of the session (Delta) or of the procedure (Iceberg); ``{size}`` is the size of a file.
        liquid: Delta's liquid clustering, along Hilbert's curve, instead of ZORDER BY.
    """

    settings: dict[str, str] = field(default_factory=dict)
    liquid: bool = False

    def write(self, source: Path) -> None:
        """Create the table anew."""
        self.rows(source).createOrReplaceTempView("bench_rows")
        using = f"USING {self.file_format}"
        if self.liquid:
            using += f" CLUSTER BY ({', '.join(self.task.keys)})"
        if self.properties:
            using += f" TBLPROPERTIES ({', '.join(f'{key!r} = {value!r}' for key, value in self.properties.items())})"
        self.spark.sql(f"CREATE TABLE {self.table.sql} {using} AS SELECT * FROM bench_rows").collect()

    def lay_out(self) -> None:
        """Rewrite every file."""
        if self.file_format == "delta":
            self._optimize()
        else:
            self._rewrite({**self._told(), "rewrite-all": "true"})

    def again(self) -> None:
        """Let the command choose what to rewrite."""
        if self.file_format == "delta":
            self._optimize()
        else:
            self._rewrite(self._told())

    def add(self, source: Path) -> None:
        """Append, then let the command choose what to rewrite."""
        self.rows(source).writeTo(self.table.sql).append()
        self.again()

    def _told(self) -> dict[str, str]:
        return {key: value.format(size=self.asked_size) for key, value in self.settings.items()}

    def _optimize(self) -> None:
        by = "" if self.liquid else f" ZORDER BY ({', '.join(self.task.keys)})"
        for key, value in self._told().items():
            self.spark.conf.set(key, value)
        try:
            self.spark.sql(f"OPTIMIZE {self.table.sql}{by}").collect()
        finally:
            for key in self.settings:
                self.spark.conf.unset(key)

    def _rewrite(self, options: dict[str, str]) -> None:
        listed = ", ".join(f"'{key}', '{value}'" for key, value in options.items())
        given = f", options => map({listed})" if listed else ""
        self.spark.sql(
            f"CALL spark_catalog.system.rewrite_data_files(table => '{self.table}', strategy => 'sort', "
            f"sort_order => 'zorder({', '.join(self.task.keys)})'{given})"
        ).collect()


@dataclass
class Hudi(Contender):
    """Hudi: a bulk insert without keys, then ``run_clustering``.

    Attributes:
        curve: ``z-order`` or ``hilbert``.
        method: how it makes a curve of the keys: ``direct`` of their bits, ``sample`` of their ranks in a sample.
        indexed: whether it keeps an index of its columns' bounds in its metadata, by which its reader leaves files out.
    """

    curve: str = "z-order"
    method: str = "direct"
    indexed: bool = False

    @property
    def folder(self) -> str:
        """Where it lies."""
        return str(OUTPUT / f"hudi_{self.curve}_{self.method}{'_indexed' if self.indexed else ''}")

    @property
    def _index(self) -> dict[str, str]:
        wanted = {"hoodie.metadata.enable": "true", "hoodie.metadata.index.column.stats.enable": "true"}
        return wanted if self.indexed else {}

    def clear(self) -> None:
        """Delete the table."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def learn(self) -> None:
        """Ask for a size that is larger by a root: both the number of its groups and of the files in one go by it.

        Its writer goes by what it has in memory, before encoding and compression.
        """
        self.excess *= max(1.0, len(self.paths()) / self.task.files) ** 0.5

    def write(self, source: Path) -> None:
        """Write all rows."""
        self._insert(source, "overwrite")

    def lay_out(self) -> None:
        """Plan a clustering and carry it out."""
        options = {
            "hoodie.layout.optimize.curve.build.method": self.method,
            "hoodie.clustering.plan.strategy.target.file.max.bytes": str(self.asked_size),
            "hoodie.clustering.plan.strategy.small.file.limit": str(1 << 40),
            "hoodie.clustering.plan.strategy.max.bytes.per.group": str(1 << 40),
            "hoodie.parquet.compression.codec": "snappy",
            **self._index,
        }
        listed = ",".join(f"{key}={value}" for key, value in options.items())
        self.spark.sql(
            f"CALL run_clustering(path => '{self.folder}', op => 'scheduleandexecute', "
            f"order => '{','.join(self.task.keys)}', order_strategy => '{self.curve}', options => '{listed}')"
        ).collect()

    def add(self, source: Path) -> None:
        """Append, then cluster."""
        self._insert(source, "append")
        self.lay_out()

    def paths(self) -> list[Path]:
        """Ask its file index."""
        return sorted(path_of(uri) for uri in self._table().inputFiles())

    def count(self, where: str) -> int:
        """Filter."""
        return self._table().where(where).count()

    def _table(self) -> DataFrame:
        skips = {**self._index, "hoodie.enable.data.skipping": "true"} if self.indexed else {}
        return self.spark.read.format("hudi").options(**skips).load(self.folder)

    def _insert(self, source: Path, mode: str) -> None:
        made = self.rows(source).write.format("hudi").mode(mode)
        made = made.option("hoodie.table.name", Path(self.folder).name.replace("-", "_"))
        made = made.option("hoodie.parquet.compression.codec", "snappy")  # Spark's own; its default is gzip
        made.options(**self._index).option("hoodie.datasource.write.operation", "bulk_insert").save(self.folder)


class DeltaRs(Contender):
    """delta-rs, without Spark: the rows by Arrow, then ``optimize.z_order``."""

    def clear(self) -> None:
        """Delete the table."""
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def folder(self) -> str:
        """Where it lies."""
        return str(OUTPUT / "delta_rs")

    def write(self, source: Path) -> None:
        """Write all rows as one table."""
        self._write(source, "overwrite")

    def lay_out(self) -> None:
        """Z-order all files."""
        DeltaTable(self.folder).optimize.z_order(
            self.task.keys, target_size=self.asked_size, writer_properties=_LIKE_SPARK
        )

    def add(self, source: Path) -> None:
        """Append, then z-order all files."""
        self._write(source, "append")
        self.lay_out()

    def paths(self) -> list[Path]:
        """Ask the log."""
        return [path_of(uri) for uri in DeltaTable(self.folder).file_uris()]

    def count(self, where: str) -> int:
        """Ask DataFusion."""
        return count_by_delta_rs(self.folder, where)

    def _write(self, source: Path, mode: Literal["append", "overwrite"]) -> None:
        write_deltalake(self.folder, ds.dataset(source).scanner().to_reader(), mode=mode, writer_properties=_LIKE_SPARK)
