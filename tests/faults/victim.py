"""The table that is struck, and what is looked at after each fault."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableName, location_of, schema_location
from dbt_zorder.spark.files import list_folders
from dbt_zorder.tables.parquet.build import build
from dbt_zorder.tables.parquet.operations.vacuum import vacuum
from dbt_zorder.tables.report import BuildReport
from dbt_zorder.tables.version import root_of, version_of
from tests.support import checksum

KINDS = ("plain", "parted")


@dataclass(frozen=True)
class Victim:
    """A z-ordered table of ``rows`` rows, partitioned or not; every number of rows has a content of its own."""

    spark: SparkSession
    table: TableName
    kind: str

    @property
    def root(self) -> Path:
        parent = schema_location(self.spark, self.table.schema).removeprefix("file:")
        return Path(parent) / f"{self.table.identifier}__zorder"

    def query(self, rows: int) -> DataFrame:
        columns = f"id, pmod(hash(id, {rows}), 1000) AS a, repeat('x', 20) AS pad, cast(id % 2 AS int) AS p"
        return self.spark.sql(f"SELECT {columns} FROM range({rows})")

    def build(
        self, rows: int, location_root: str | None = None, grace_hours: float = 0, keep_versions: int = 0
    ) -> BuildReport:
        spec = LayoutSpec(by=["id", "a"], files=2, partition_by=["p"] if self.kind == "parted" else [])
        request = BuildRequest(
            self.table, spec, keep_versions=keep_versions, grace_hours=grace_hours, location_root=location_root
        )
        return build(self.spark, self.query(rows), request)

    def expected(self, rows: int) -> tuple[int, int]:
        return checksum(self.query(rows))

    def served(self) -> tuple[int, int]:
        """Rows and checksum of the table as a session reads it that knew nothing of it; zeros if there is none."""
        if not self.spark.catalog.tableExists(self.table.sql):
            return (0, 0)
        self.spark.sql(f"REFRESH TABLE {self.table.sql}")
        return checksum(self.spark.table(self.table.sql))

    def current(self) -> str:
        return version_of(location_of(self.spark, self.table))

    def others(self) -> list[str]:
        """Everything in the root besides the version that is served."""
        if schema_location(self.spark, self.table.schema).startswith("file:"):
            names = sorted(path.name for path in self.root.iterdir()) if self.root.exists() else []
        else:
            names = list_folders(self.spark, root_of(self.spark, self.table, None))
        return [name for name in names if name != self.current()]

    def vacuum(self) -> list[str]:
        """Delete all that can be; return what is left besides the version that is served."""
        vacuum(self.spark, self.table, keep=0, grace_hours=0, dry_run=False)
        return self.others()
