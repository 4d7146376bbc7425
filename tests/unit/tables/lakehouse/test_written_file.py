"""The partition in a file's path, and the partitions that formats read from our texts."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import types as t

from dbt_zorder.spark.columns import without
from dbt_zorder.tables.lakehouse.written_file import why_not_partitioned, written_files

COLUMNS = t.StructType(
    [
        t.StructField("id", t.LongType()),
        t.StructField("day", t.DateType()),
        t.StructField("at", t.TimestampType()),
        t.StructField("text", t.StringType()),
    ]
)


def test_files_are_told_by_their_places(tmp_path: Path) -> None:
    folder = tmp_path / "a=1"
    folder.mkdir()
    places = [str(tmp_path / "x.parquet"), str(folder / "y.parquet")]
    for rows, place in enumerate(places):
        pq.write_table(pa.table({"id": [1] * rows}), place)
    found = written_files(places, str(tmp_path), lambda below: f"file:/t/{below}")
    assert [one.path for one in found] == ["file:/t/x.parquet", "file:/t/a=1/y.parquet"]
    assert [one.partition for one in found] == [[], ["1"]]
    assert [one.footer.num_rows for one in found] == [0, 1]
    assert [one.size for one in found] == [Path(place).stat().st_size for place in places]


def test_who_parts_a_table() -> None:
    assert why_not_partitioned(COLUMNS, [], []) == ""
    assert why_not_partitioned(COLUMNS, ["day", "text"], ["day", "text"]) == ""
    assert why_not_partitioned(COLUMNS, ["day", "text"], ["text", "day"]) == "it is parted in another way"
    assert "parted by at" in why_not_partitioned(COLUMNS, ["day", "at"], ["day", "at"])
    assert why_not_partitioned(COLUMNS, ["text.x"], ["text.x"]) == "it is parted by a part of a struct"
    assert without(COLUMNS, ["day"]).names == ["id", "at", "text"]
