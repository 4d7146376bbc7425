from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from dbt_zorder.engine.parquet.encodings import VERSION_OPTION, VERSIONS, Encodings
from dbt_zorder.engine.parquet.writer import ArrowWriter, arrow_writer
from dbt_zorder.spark.local_disk import on_disk
from tests.support import same_rows, settings
from tests.unit.engine.parquet.test_writer import ALL, FLAT, fetched, needs_page_limit, write, writer_of
from tests.unit.layout.frames import cast_values

V2 = {VERSION_OPTION: "v2"}
pytestmark = needs_page_limit


def by_differences(file: str) -> Mapping[str, str]:
    """Return by leaf the encoding of differences that it has, if it has one."""
    group = pq.ParquetFile(file).metadata.row_group(0)
    chunks = [group.column(number) for number in range(group.num_columns)]
    return {chunk.path_in_schema: name for chunk in chunks for name in chunk.encodings if name.startswith("DELTA")}


def test_the_second_version_is_like_sparks_own(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.sql(ALL)
    ours, theirs = write(spark, frame, tmp_path, V2, files=1)
    delta, wanted = map(by_differences, (ours, theirs))
    # of bytes of one length Spark's writer thinks that a dictionary of as many values spares some
    assert {path: name for path, name in delta.items() if path != "n38"} == wanted
    assert {*delta.values()} == {"DELTA_BINARY_PACKED", "DELTA_BYTE_ARRAY"}
    for vectorized in ("true", "false"):
        with settings(spark, {"spark.sql.parquet.enableVectorizedReader": vectorized}):
            assert same_rows(spark.read.parquet(str(tmp_path / "here")), frame)


def test_every_value_comes_back(spark: SparkSession, tmp_path: Path) -> None:
    """At the edges of its type, where differences pass all bits."""
    for number, (name, values) in enumerate(FLAT):
        frame = spark.sql(cast_values(name, [*values, "NULL"]))
        rows, place = fetched(frame), on_disk(spark, str(tmp_path / f"{number}"))
        assert place is not None
        writer_of(spark, frame, tmp_path / f"{number}", V2).write(rows, [np.arange(rows.count)], place)
        assert same_rows(spark.read.parquet(place.path), frame), name


def test_the_session_may_say_so_and_the_model_has_the_last_word(spark: SparkSession, tmp_path: Path) -> None:
    schema = spark.range(1).schema
    with settings(spark, {VERSION_OPTION: "PARQUET_2_0"}):
        by_session = arrow_writer(spark, schema, {}, str(tmp_path))
        by_model = arrow_writer(spark, schema, {VERSION_OPTION: "v1"}, str(tmp_path))
    assert isinstance(by_session, ArrowWriter)
    assert isinstance(by_model, ArrowWriter)
    assert (by_session.encodings, by_model.encodings) == (Encodings(2), Encodings(1))
    assert arrow_writer(spark, schema, {VERSION_OPTION: "v3"}, str(tmp_path)) == f"{VERSION_OPTION} is v3"


def test_files_become_smaller(spark: SparkSession, tmp_path: Path) -> None:
    rows = fetched(spark.sql("SELECT id, hash(id) AS h, id * 100 + id % 7 AS price FROM range(20000)"))
    sizes = {}
    for version in VERSIONS:
        found = arrow_writer(spark, spark.range(1).schema, {VERSION_OPTION: version}, str(tmp_path))
        assert isinstance(found, ArrowWriter)
        sizes[version] = found.size_of(rows.rows)
    assert sizes["v1"] == sizes["PARQUET_1_0"]
    assert sizes["v2"] == sizes["PARQUET_2_0"] < 0.6 * sizes["v1"]


def test_columns_with_a_dictionary_keep_it() -> None:
    schema = pa.schema([("a", pa.int64()), ("b", pa.int64()), ("f", pa.float64()), ("t", pa.bool_())])
    assert Encodings(2).writer_options(schema, ["b"])["column_encoding"] == {"a": "DELTA_BINARY_PACKED"}
    assert Encodings(2).writer_options(schema, schema.names)["column_encoding"] is None
    assert Encodings().writer_options(schema, []) == {}
