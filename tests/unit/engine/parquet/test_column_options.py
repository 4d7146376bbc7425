from __future__ import annotations

import glob
import inspect
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from dbt_zorder.engine.parquet.column_options import Traits
from dbt_zorder.engine.parquet.writer import ArrowWriter, arrow_writer
from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableName, describe
from dbt_zorder.spark.local_disk import on_disk
from dbt_zorder.tables.parquet.build import build
from tests.support import rows_read, unique
from tests.unit.engine.parquet.test_writer import ALL, fetched
from tests.unit.layout.frames import nested

needs_bloom_filters = pytest.mark.skipif(
    "bloom_filter_options" not in inspect.signature(pq.ParquetWriter.__init__).parameters, reason="of a later PyArrow"
)


@pytest.mark.parametrize(("length", "rows"), [(5, 1024), (20_000, 52), (5_000_000, 1)])
def test_pages_of_long_text_are_looked_at_sooner(length: int, rows: int) -> None:
    table = pa.table({"n": range(9), "s": ["x" * length] * 9})
    assert Traits.of(table, 100, 9).batch_rows == rows
    short = Traits.of(pa.table({"n": range(9), "s": ["x"] * 9}), 100, 9)
    assert short.with_row_group(table.select([]), 9, length).batch_rows == rows


@needs_bloom_filters
@pytest.mark.parametrize("column", ["id", "i", "n9", "n18", "n38", "day", "ts", "ntz", "s", "b"])
def test_spark_passes_over_row_groups_by_their_bloom_filters(spark: SparkSession, tmp_path: Path, column: str) -> None:
    """As over those of its own writer; and finds what is there."""
    every = spark.sql(ALL).select("id", column, "flag")
    names = list(dict.fromkeys(("id", column, "flag")))
    written, here, there = every.where("id % 2 = 0").select(names), tmp_path / "here", tmp_path / "there"
    writer, place = arrow_writer(spark, written.schema, {}, str(tmp_path), names), on_disk(spark, str(here))
    assert isinstance(writer, ArrowWriter)
    assert place is not None
    writer.write(fetched(written), [np.arange(150)], place)
    written.coalesce(1).write.options(**{f"parquet.bloom.filter.enabled#{column}": "true"}).parquet(str(there))
    group = pq.read_metadata(glob.glob(f"{here}/*.parquet")[0]).row_group(0)
    chunks = [group.column(number) for number in range(group.num_columns)]
    assert [chunk.path_in_schema for chunk in chunks if chunk.bloom_filter_offset] == names[:-1]
    for number, rows in ((102, 1), (151, 0)):  # between the bounds of pages either way
        value = every.where(f"id = {number}").collect()[0][column]
        wanted = f.lit(value).cast(every.schema[column].dataType)
        read = []
        for folder in (here, there):
            query = spark.read.parquet(str(folder)).where(f.col(column) == wanted)
            assert len(query.collect()) == rows
            read.append(rows_read(query))
        # Spark asks no filter of Parquet's for moments without a zone
        assert read == ([150, 150] if column == "ntz" else [150 * rows, 150 * rows])


@needs_bloom_filters
def test_a_leaf_of_a_struct_has_its_filter_too(spark: SparkSession, database: str) -> None:
    table, query = TableName(database, unique("t")), spark.sql(nested(900))
    build(spark, query, BuildRequest(table, LayoutSpec(by=["id"], files=1), bloom=["s.id"]))
    info = describe(spark, table)
    assert info is not None
    (file,) = glob.glob(f"{info.location.removeprefix('file:')}/*.parquet")
    metadata = pq.read_metadata(file)
    assert metadata.created_by.startswith("parquet-cpp")
    chunks = [metadata.row_group(0).column(number) for number in range(metadata.num_columns)]
    assert [chunk.path_in_schema for chunk in chunks if chunk.bloom_filter_offset] == ["s.id"]
    wanted = query.where("s.id = 7 OR s.id = 251").count()
    assert 0 < wanted == spark.table(table.sql).where("s.id = 7 OR s.id = 251").count()
    assert len(spark.table(table.sql).where("s.id = 100000").collect()) == 0
