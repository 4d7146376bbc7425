"""Write the tables that later releases go on with: ``python -m tests.released.write``.

To be run once a release, by the release itself, into a folder of its own. What is stored is what was written, but for
the warehouse's path and the name of the machine, in whose place stand placeholders.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from datetime import datetime, timezone
from itertools import count
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from dbt_zorder.adapter.session.open import open_session
from dbt_zorder.engine import choose
from dbt_zorder.errors import BuildError
from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableName, describe, properties
from dbt_zorder.spark.files import move as move_file
from dbt_zorder.tables.batch import Batch
from dbt_zorder.tables.parquet import journal
from dbt_zorder.tables.parquet.build import build
from dbt_zorder.tables.parquet.incremental import increment
from dbt_zorder.tables.parquet.properties import own_properties
from dbt_zorder.tables.parquet.retention.tombstone import raise_tombstone
from dbt_zorder.tables.parquet.snapshot import SnapshotColumns, take_snapshot
from dbt_zorder.tables.version import Marker, new_version, write_marker
from tests.released.contents import (
    ALL_TYPES,
    CONTENTS,
    PARTS,
    PLACEHOLDER,
    SCHEMA,
    SNAPSHOT,
    STATS_ENDING,
    TWO_KEYS,
    WAREHOUSE,
    rows,
)
from tests.support import same_rows

SNAPSHOT_NAMES = SnapshotColumns("scd", "until")


class Cut(Exception):  # noqa: N818
    """What ends a run half-way."""


def request(name: str, **more: Any) -> BuildRequest:
    content = CONTENTS[name]
    layout = {key: more.pop(key) for key in ("curve", "encoding") if key in more}
    spec = LayoutSpec(
        by=content.by, files=2 if content.partition_by else 4, partition_by=content.partition_by, **layout
    )
    return BuildRequest(TableName(SCHEMA, name), spec, **more)


def make(spark: SparkSession, name: str, *queries: str, **more: Any) -> None:
    for query in queries:
        build(spark, spark.sql(query), request(name, **more))


def add(spark: SparkSession, name: str, query: str, *, overwrite: bool = False) -> None:
    report = increment(spark, spark.sql(query), request(name), Batch(overwrite=overwrite, may_rewrite=False))
    assert report.appended is not None


def add_cut_short(spark: SparkSession, name: str, query: str, moves: int, *, overwrite: bool = False) -> None:
    """Add a batch whose run ends after so many files were moved."""
    done = count()

    def move(*args: Any) -> bool:
        if next(done) == moves:
            raise Cut
        return move_file(*args)

    with patch.object(journal, "move", move):
        try:
            add(spark, name, query, overwrite=overwrite)
        except BuildError:
            return
    raise AssertionError(name)


def write_all(spark: SparkSession, warehouse: Path) -> None:
    own = {"team": "sales", "contact_url": "https://there"}
    make(
        spark,
        "plain",
        rows(ALL_TYPES, 0, 40),
        CONTENTS["plain"].rows,
        properties=own,
        comment="all types",
        stats_columns=("amount", "d", "info.a"),
    )
    leave_remains(spark, warehouse)
    make(spark, "parted", rows(PARTS, 0, 30), CONTENTS["parted"].rows)
    make(spark, "batches", rows(TWO_KEYS, 0, 50))
    for first, end in ((50, 60), (60, 75), (75, 90)):
        add(spark, "batches", rows(TWO_KEYS, first, end))
    make(spark, "overwritten", rows(PARTS, 0, 60))
    add(
        spark,
        "overwritten",
        f"SELECT * FROM ({rows(PARTS, 100, 130)}) WHERE p IS NULL OR p <> 'part=1 %ü'",
        overwrite=True,
    )
    add(spark, "overwritten", f"SELECT * FROM ({rows(PARTS, 100, 130)}) WHERE p = 'part=1 %ü'")
    make(spark, "ready", rows(TWO_KEYS, 0, 40))
    add_cut_short(spark, "ready", rows(TWO_KEYS, 40, 50), 0)
    make(spark, "halfway", rows(PARTS, 0, 60))
    add_cut_short(spark, "halfway", f"SELECT * FROM ({rows(PARTS, 100, 130)}) WHERE p IS NOT NULL", 3, overwrite=True)
    write_snapshot(spark)
    make(spark, "moved", rows(TWO_KEYS, 0, 30), location_root=str(warehouse / "elsewhere"))
    make(spark, "moved", CONTENTS["moved"].rows)
    make(spark, "hilbert", CONTENTS["hilbert"].rows, curve="hilbert")
    make(spark, "bits", CONTENTS["bits"].rows, encoding="bits")
    with patch.object(choose, "_writer", lambda *_: "Spark is to write it"):
        make(spark, "by_spark", CONTENTS["by_spark"].rows)
    make(spark, "aside", CONTENTS["aside"].rows)


def write_snapshot(spark: SparkSession) -> None:
    make(spark, "snapshot", CONTENTS["snapshot"].before)
    changes = (
        "SELECT type AS dbt_change_type, id AS dbt_unique_key, * EXCEPT (type) FROM (SELECT type, "
        f"{SNAPSHOT} FROM VALUES ('update', 1, 'A', '1a', '2024-05-01'), ('insert', 1, 'A', '1A', NULL), "
        "('insert', 3, 'c', '3c', NULL) AS rows(type, id, v, scd, until))"
    )
    assert take_snapshot(spark, changes, request("snapshot"), SNAPSHOT_NAMES) is not None


def leave_remains(spark: SparkSession, warehouse: Path) -> None:
    """Leave beside the versions of ``plain`` what a build that died leaves, and a deletion that was cut short."""
    for is_dying in (False, True):
        version = new_version()
        path = f"{warehouse}/plain__zorder/{version}"
        began = datetime.now(timezone.utc).isoformat()
        write_marker(spark, path, Marker(version, f"{SCHEMA}.plain", "", began, ["id", "ts"]))
        if is_dying:
            raise_tombstone(spark, path)
            shutil.rmtree(f"{path}/_zorder_version")


def tables(spark: SparkSession, warehouse: Path) -> list[dict[str, Any]]:
    """Return what the catalog knows of each table; what is under way is completed by a test, not here."""
    found = []
    for name in CONTENTS:
        info = describe(spark, TableName(SCHEMA, name))
        assert info is not None
        shown = properties(spark, TableName(SCHEMA, name))
        record = {key: value for key, value in shown.items() if key.startswith("dbt_zorder.")}
        found.append(
            {
                "name": name,
                "columns": [f"`{column}` {kind}" for column, kind, _ in info.columns],
                "partition_by": list(info.partition_columns),
                "comment": info.comment,
                "properties": {**record, **own_properties(spark, TableName(SCHEMA, name))},
                "location": info.location.removeprefix(f"file:{warehouse}/"),
            }
        )
    return found


def store(warehouse: Path, target: Path, described: list[dict[str, Any]]) -> None:
    """Copy all folders of the warehouse, with placeholders for what is this machine's."""
    shutil.rmtree(target, ignore_errors=True)
    for root in sorted(warehouse.iterdir()):
        shutil.copytree(root, target / root.name)
    for path in sorted(target.rglob("*")):
        if path.suffix == ".crc":
            path.unlink()  # would contradict what is replaced
        elif path.suffix == STATS_ENDING:
            replace_paths(path, str(warehouse), PLACEHOLDER)
        elif path.suffix in (".txt", ".json"):
            text = path.read_text().replace(str(warehouse), PLACEHOLDER)
            path.write_text(json.dumps({"host": "elsewhere", "pid": 1}) if path.name == "owner.json" else text)
    (target / "tables.json").write_text(json.dumps(described, indent=1, ensure_ascii=False) + "\n")


def replace_paths(path: Path, old: str, new: str) -> None:
    """Replace a folder in what a file of stats says of paths; who wrote it stays on record only if Arrow did."""
    stats = pq.ParquetFile(path).read()
    paths = pc.replace_substring(stats["file_path"], old, new)
    pq.write_table(stats.set_column(0, "file_path", paths), path)


def main(target: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        spark = open_session(
            {"spark.sql.shuffle.partitions": "3", "spark.sql.session.timeZone": "UTC"}, f"{folder}/session"
        )
        warehouse = Path(folder) / "warehouse"
        spark.sql(f"CREATE DATABASE {SCHEMA} LOCATION '{warehouse}'")
        write_all(spark, warehouse)
        for name in CONTENTS.keys() - {"ready", "halfway"}:
            assert same_rows(spark.table(f"{SCHEMA}.{name}"), spark.sql(CONTENTS[name].rows)), name
        store(warehouse, target, tables(spark, warehouse))
        spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else WAREHOUSE)
