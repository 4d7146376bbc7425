from __future__ import annotations

import contextlib
import glob
import inspect
import json
from collections.abc import Iterator, Mapping
from functools import reduce
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from dbt_zorder.engine.local.fetched_keys import fetch
from dbt_zorder.engine.parquet import writer as module
from dbt_zorder.engine.parquet.encodings import VERSION_OPTION
from dbt_zorder.engine.parquet.writer import ArrowWriter, are_old, arrow_writer
from dbt_zorder.errors import BuildError
from dbt_zorder.layout.known_keys import Fetched
from dbt_zorder.layout.page_order import PAGE_ROWS_OPTION
from dbt_zorder.spark.columns import resolve_all
from dbt_zorder.spark.local_disk import on_disk
from dbt_zorder.stats.collect import row_stats
from dbt_zorder.stats.footers import footer_stats
from tests.support import same_rows, settings
from tests.unit.layout.frames import cast_values
from tests.unit.layout.test_keys import TYPES

ALL = """
    SELECT id, cast(id AS tinyint) ti, cast(id AS smallint) si, cast(id AS int) i, id % 2 = 0 AS flag,
      cast(id AS float) / 3 AS f, if(id % 7 = 0, double('NaN'), id / 7D) AS d, cast(id * 0.11 AS decimal(9, 2)) AS n9,
      cast(id * 0.11 AS decimal(18, 4)) AS n18, cast(id * 0.11 AS decimal(38, 6)) AS n38,
      date_add(DATE'2020-02-28', cast(id AS int)) AS day, timestamp_seconds(id * 1e5) AS ts,
      cast(timestamp_seconds(id * 1e5) AS timestamp_ntz) AS ntz, if(id % 5 = 0, NULL, concat('é', id)) AS s,
      unhex(md5(string(id))) AS b, cast(NULL AS string) AS nothing, 'same' AS same
    FROM range(300)
"""


needs_page_limit = pytest.mark.skipif(
    "max_rows_per_page" not in inspect.signature(pq.ParquetWriter.__init__).parameters, reason="of a later PyArrow"
)
pytestmark = needs_page_limit
PROTOCOL = "org.apache.spark.internal.io.HadoopMapReduceCommitProtocol"
Options = Mapping[str, str]


@contextlib.contextmanager
def unset(spark: SparkSession, conf: Mapping[str, str | None]) -> Iterator[None]:
    """Leave to Spark's own default what is None."""
    with settings(spark, {key: str(spark.conf.get(key)) for key in conf}):
        for key, value in conf.items():
            if value is None:
                spark.conf.unset(key)
        yield


def fetched(frame: DataFrame) -> Fetched:
    found = fetch(frame, [], 1 << 26)
    assert found is not None
    return found


def writer_of(
    spark: SparkSession, frame: DataFrame, path: Path, options: Mapping[str, str] | None = None
) -> ArrowWriter:
    found = arrow_writer(spark, frame.schema, options or {}, str(path.parent))
    assert isinstance(found, ArrowWriter), found
    return found


def write(
    spark: SparkSession, frame: DataFrame, path: Path, options: Options | None = None, files: int = 2
) -> list[str]:
    """Write files here, and the same rows by Spark's own writer beside them; return all."""
    here, there = path / "here", path / "there"
    rows = fetched(frame)
    place = on_disk(spark, str(here))
    assert place is not None
    parts = np.array_split(np.arange(rows.count), files)
    writer_of(spark, frame, here, options).write(rows, parts, place)
    frame.coalesce(1).write.options(**(options or {})).parquet(str(there))
    return [*sorted(glob.glob(f"{here}/*.parquet")), *glob.glob(f"{there}/*.parquet")]


def test_files_are_like_sparks_own(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.sql(ALL)
    *ours, theirs = (pq.ParquetFile(file) for file in write(spark, frame, tmp_path, files=1))
    for file in ours:
        # but for what a query calls NOT NULL, which no column of a table is
        fields = [str(list(found.schema_arrow)).replace(" not null", "") for found in (file, theirs)]
        assert fields[0] == fields[1]
        for number in range(len(theirs.schema)):
            one, other = (found.schema.column(number) for found in (file, theirs))
            assert (one.path, one.physical_type, str(one.logical_type)) == (
                other.path,
                other.physical_type,
                str(other.logical_type),
            )
            chunks = [found.metadata.row_group(0).column(number) for found in (file, theirs)]
            assert chunks[0].compression == chunks[1].compression == "SNAPPY"
            assert chunks[0].has_offset_index
            dictionaries = ["DICTIONARY" in str(chunk.encodings) for chunk in chunks]
            assert dictionaries[0] == dictionaries[1], one.path
        ours, wanted = file.metadata.metadata, theirs.metadata.metadata
        assert ours[b"org.apache.spark.version"] == wanted[b"org.apache.spark.version"]
        row_metadata = b"org.apache.spark.sql.parquet.row.metadata"
        nullable = wanted[row_metadata].replace(b'"nullable":false', b'"nullable":true')
        assert json.loads(ours[row_metadata]) == json.loads(nullable)
    assert same_rows(spark.read.parquet(str(tmp_path / "here")), frame)
    assert spark.read.parquet(str(tmp_path / "here")).schema.simpleString() == frame.schema.simpleString()


FLAT = [case for case in TYPES if "interval" not in case[0] and "<" not in case[0]]
CASES = [("UTC", *case) for case in FLAT]
CASES += [("America/New_York", *case) for case in TYPES if "timestamp" in case[0]]


@pytest.mark.parametrize(("zone", "name", "values"), CASES, ids=[" ".join(case[:2]) for case in CASES])
def test_every_value_comes_back(spark: SparkSession, tmp_path: Path, zone: str, name: str, values: list[str]) -> None:
    """At the edges of its type, by Spark, with the stats that its rows have."""
    with settings(spark, {"spark.sql.session.timeZone": zone}):
        frame = spark.sql(cast_values(name, [*values, "NULL"]))
        write(spark, frame, tmp_path)
        here = spark.read.parquet(str(tmp_path / "here"))
        assert same_rows(here, frame)
        columns = resolve_all(["v"], frame.schema, sensitive=False)
        stats = footer_stats(spark, str(tmp_path / "here"), columns, "v1")
        assert (stats is None) == (name in ("decimal(38,10)", "decimal(38,38)"))
        if stats is not None:
            assert same_rows(stats.frame(), row_stats(here, columns, "v1"))


FLOATS = ["-1", "'-0.0'", "0", "1.5", "'Infinity'", "'NaN'"]
PUSHED: list[tuple[str, list[str], str]] = [
    *((kind, FLOATS, rows) for kind in ("float", "double") for rows in ("1", "20000")),
    *((kind, values, "1") for kind, values in FLAT if kind not in ("float", "double")),
]
COMPARED = ["v = {}", "v <> {}", "v > {}", "v >= {}", "v < {}", "v <= {}", "v <=> {}", "v IN ({})", "NOT v IN ({})"]


@pytest.mark.parametrize(("kind", "values", "page_rows"), PUSHED, ids=[f"{kind} {rows}" for kind, _, rows in PUSHED])
def test_a_filter_that_parquet_is_asked_finds_every_row(
    spark: SparkSession, tmp_path: Path, kind: str, values: list[str], page_rows: str
) -> None:
    """What a file says of its values leaves no row group and no page out: NaN is above all numbers, and -0.0 is 0.0."""
    written = [f"CAST({value} AS {kind})" for value in [*values, "NULL"]]
    frame = spark.sql(" UNION ALL ".join(f"SELECT {value} AS v" for value in written)).coalesce(1)
    place = on_disk(spark, str(tmp_path / "here"))
    assert place is not None
    # every value by itself, every two, and all; and every one several times, for dictionaries
    numbers = range(len(written))
    files = [np.array(some) for size in (1, 2, len(written)) for some in combinations(numbers, size)]
    # but 0.0: in its dictionary parquet-java does not find -0.0, in files that Spark itself writes neither
    files += [np.repeat(number, 9) for number in numbers if values is not FLOATS or number != FLOATS.index("0")]
    rows, options = fetched(frame), {PAGE_ROWS_OPTION: page_rows}
    writer_of(spark, frame, tmp_path / "here", options).write(rows, files, place)
    second = writer_of(spark, frame, tmp_path / "here", {**options, VERSION_OPTION: "v2"})
    second.write(rows, [file for file in files if len(file) > 2], place)
    ours = spark.read.parquet(str(tmp_path / "here"))
    asked = [one.format(value) for one in COMPARED for value in written]
    wanted = ours.selectExpr(*(f"count_if({one})" for one in asked)).collect()[0]
    # each by a scan of its own, whose filter Parquet gets
    found = reduce(DataFrame.unionAll, (ours.where(one).selectExpr("count(*)") for one in asked)).collect()
    assert not [(one, had[0], want) for one, had, want in zip(asked, found, wanted, strict=True) if had[0] != want]


@pytest.mark.parametrize("kind", ["float", "double"])
def test_pyarrow_finds_zeros_in_files_of_nothing_else(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    """Its own ``isin`` reads bounds of -0.0 and 0.0, which zero has, as a column of -0.0."""
    frame = spark.sql(f"SELECT cast(0 AS {kind}) AS v, id, cast(1 + id % 2 AS {kind}) AS w FROM range(50)")
    *ours, _ = write(spark, frame, tmp_path)
    files = ds.dataset(ours)
    for wanted in ([0.0], [0.0, 5.0]):
        assert files.count_rows(filter=ds.field("v").isin(wanted)) == 50
    assert files.count_rows(filter=ds.field("w").isin([1.0])) == 25
    group = pq.read_metadata(ours[0]).row_group(0)
    assert [group.column(place).is_stats_set for place in range(3)] == [False, True, True]
    assert spark.read.parquet(str(tmp_path / "here")).where("v = 0").count() == 50


@pytest.mark.parametrize("codec", ["none", "UNCOMPRESSED", "snappy", "gzip", "zstd", "lz4_raw"])
def test_the_codec_is_the_one_that_was_asked_for(spark: SparkSession, tmp_path: Path, codec: str) -> None:
    frame = spark.sql(ALL)
    *ours, theirs = write(spark, frame, tmp_path, {"compression": codec})
    codecs = [pq.read_metadata(file).row_group(0).column(0).compression for file in (*ours, theirs)]
    assert len(set(codecs)) == 1
    # part-00000-<uuid>-c000.zstd.parquet
    assert {Path(file).name.partition("-c000")[2] for file in (*ours, theirs)} == {
        Path(theirs).name.partition("-c000")[2]
    }
    assert same_rows(spark.read.parquet(str(tmp_path / "here")), frame)


@pytest.mark.parametrize("way", ["option", "session"])
def test_pages_are_as_long_as_was_asked_for(spark: SparkSession, tmp_path: Path, way: str) -> None:
    limit = {"parquet.page.row.count.limit": "20"}
    frame = spark.range(300).selectExpr("id", "string(id) AS s")
    with settings(spark, limit if way == "session" else {}):
        files = write(spark, frame, tmp_path, limit if way == "option" else {})
        assert writer_of(spark, frame, tmp_path, limit if way == "option" else {}).page_rows == 20
    for file in files[:2]:
        # each of the 8 pages has a size of its own
        assert pq.read_metadata(file).row_group(0).column(0).total_uncompressed_size > 150 * 8 + 7 * 20


def test_no_rows_are_one_file_of_their_columns(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.sql(ALL).where("id < 0")
    place = on_disk(spark, str(tmp_path / "none"))
    assert place is not None
    writer_of(spark, frame, tmp_path).write(fetched(frame), [], place)
    none = spark.read.parquet(str(tmp_path / "none"))
    assert none.schema.simpleString() == frame.schema.simpleString()
    assert none.collect() == none.where("id > 0 AND s = 'é1'").collect() == []


@pytest.mark.parametrize(
    ("options", "conf", "why"),
    [
        ({"compression": "lz4"}, {}, "the codec is lz4"),
        ({"parquet.block.size": "1000000"}, {}, "alone is parquet.block.size"),
        ({"Parquet.Enable.Dictionary": "false"}, {}, "alone is parquet.enable.dictionary"),
        ({}, {"parquet.compression.codec.zstd.level": "9"}, "alone is parquet.compression.codec.zstd.level"),
        ({}, {"spark.sql.parquet.writeLegacyFormat": "true"}, "writeLegacyFormat is true"),
        ({}, {"spark.sql.parquet.outputTimestampType": "INT96"}, "outputTimestampType is INT96"),
        ({}, {"spark.sql.parquet.outputTimestampType": None}, "outputTimestampType is INT96"),
        ({}, {"spark.sql.parquet.compression.codec": "lz4"}, "the codec is lz4"),
        ({}, {"spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY"}, "is LEGACY"),
        (
            {},
            {"spark.sql.sources.commitProtocolClass": "org.apache.spark.internal.io.HadoopMapReduceCommitProtocol"},
            "MapReduceCommitProtocol",
        ),
    ],
)
def test_what_only_sparks_writer_does_is_left_to_it(
    spark: SparkSession, tmp_path: Path, options: dict[str, str], conf: dict[str, str | None], why: str
) -> None:
    with settings(spark, {key: value for key, value in conf.items() if value is not None}), unset(spark, conf):
        found = arrow_writer(spark, spark.sql(ALL).schema, options, str(tmp_path))
        assert isinstance(found, str)
        assert found.endswith(why)
        if "Timestamp" in str(conf):
            assert isinstance(
                arrow_writer(spark, spark.sql("SELECT 1 AS a").schema, options, str(tmp_path)), ArrowWriter
            )


def test_tables_elsewhere_and_numbers_of_columns_are_left_to_it_too(spark: SparkSession, tmp_path: Path) -> None:
    for path in ("s3a://bucket/t", f"{tmp_path}/that is not there"):
        assert "elsewhere" in str(arrow_writer(spark, spark.range(1).schema, {}, path))
    numbered = spark.range(1).withMetadata("id", {"parquet.field.id": 7})
    assert "numbers" in str(arrow_writer(spark, numbered.schema, {}, str(tmp_path)))


def test_an_older_arrow_is_not_asked_to_write(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_takes", lambda option: option == "max_rows_per_page")
    assert isinstance(arrow_writer(spark, spark.range(1).schema, {}, str(tmp_path)), ArrowWriter)
    assert "no bloom filters" in str(arrow_writer(spark, spark.range(1).schema, {}, str(tmp_path), ["id"]))
    monkeypatch.setattr(module, "_takes", lambda option: option == "bloom_filter_options")
    assert "pages without end" in str(arrow_writer(spark, spark.range(1).schema, {}, str(tmp_path)))


@pytest.mark.parametrize(
    ("value", "old"),
    [
        ("DATE'1582-10-14'", True),
        ("DATE'1582-10-15'", False),
        ("TIMESTAMP'1899-12-31 23:59:59Z'", True),
        ("TIMESTAMP'1900-01-01 00:00:00Z'", False),
        ("TIMESTAMP_NTZ'0001-01-01 00:00:00'", False),
        ("CAST(NULL AS DATE)", False),
        ("1", False),
    ],
)
def test_dates_of_another_calendar_are_told(spark: SparkSession, value: str, *, old: bool) -> None:
    rows = fetched(spark.sql(f"SELECT 1 AS a, {value} AS v")).rows
    for mode, found in (("EXCEPTION", old), ("CORRECTED", False)):
        with settings(spark, {"spark.sql.parquet.datetimeRebaseModeInWrite": mode}):
            assert are_old(spark, rows) is found


def test_a_disk_that_refuses_is_named(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    frame = spark.range(10)
    place = on_disk(spark, str(tmp_path / "t"))
    assert place is not None
    monkeypatch.setattr(ArrowWriter, "_writer_to", full)
    with pytest.raises(BuildError, match=r"t could not be written: .*No space left"):
        writer_of(spark, frame, tmp_path).write(fetched(frame), [np.arange(10)], place)


def test_rights_are_those_of_sparks_files(spark: SparkSession, tmp_path: Path) -> None:
    *ours, theirs = write(spark, spark.range(10), tmp_path)
    assert {Path(file).stat().st_mode for file in ours} == {Path(theirs).stat().st_mode}
    assert Path(ours[0]).parent.stat().st_mode == Path(theirs).parent.stat().st_mode
