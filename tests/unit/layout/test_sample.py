from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

from dbt_zorder.layout.keys import Key, key_of
from dbt_zorder.layout.sample import (
    LEAST_ROWS,
    MOST_BYTES,
    Sample,
    _rank,
    draw,
    rows_wanted_of,
    sample_shares,
    wanted_rows,
)
from dbt_zorder.spark.arrow import collect_arrow
from dbt_zorder.spark.columns import resolve

ONE = np.zeros(1, dtype=np.int64)


def keys(df: DataFrame, *names: str) -> list[Key]:
    return [key_of(resolve(name, df.schema)) for name in names]


def drawn(df: DataFrame, *names: str, rows: int = 1 << 20, total: int = 1 << 20, seed: int = 0) -> Sample:
    return draw(df, keys(df, *names), rows, total, seed, None, ONE)


def test_nan_of_any_bits_is_one_value_and_the_greatest() -> None:
    bits = np.array([0x7FF8000000000000, 0xFFF8000000000000, 0x7FF0000000000001], dtype=np.uint64)
    values = np.concatenate([[1.0, -0.0, 0.0, np.inf], bits.view(np.float64)])
    ranks, distinct = _rank(pa.chunked_array([pa.array(values), pa.array([None], pa.float64())]))
    assert ranks.tolist() == [2, 1, 1, 3, 4, 4, 4, 0]
    assert len(distinct) == 4


def test_ranks_are_dense_in_order_from_one_and_null_is_zero(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(5,), (None,), (-1,), (5,), (7,)], "v int").coalesce(1)
    sample = drawn(frame, "v")
    assert sample.ranks[:, 0].tolist() == [2, 0, 1, 2, 3]
    assert sample.distinct[0].to_pylist() == [-1, 5, 7]


def test_zeros_are_one_value_and_nan_is_above_all(spark: SparkSession) -> None:
    frame = spark.sql(
        "SELECT CAST(v AS double) v FROM VALUES ('NaN'), ('-0.0'), ('Infinity'), ('0.0'), (NULL), ('-1') AS t(v)"
    )
    assert drawn(frame.coalesce(1), "v").ranks[:, 0].tolist() == [4, 2, 3, 2, 0, 1]


@pytest.mark.parametrize(
    "value", ["id", "cast(id AS string)", "cast(id AS decimal(30, 3))", "date_add(DATE'2024-01-01', cast(id AS int))"]
)
def test_ranks_follow_sparks_order(spark: SparkSession, value: str) -> None:
    frame = spark.sql(f"SELECT {value} AS v FROM (SELECT pmod(id * 37, 100) id FROM range(100))").coalesce(1)
    ranks = drawn(frame, "v").ranks[:, 0]
    ordered = [row[0] for row in frame.orderBy("v").collect()]
    assert [ordered[rank - 1] for rank in ranks] == [row[0] for row in frame.collect()]


def test_the_same_seed_draws_the_same_rows_and_another_seed_others(spark: SparkSession) -> None:
    frame = spark.range(20_000)
    one, again, other = (drawn(frame, "id", rows=1000, total=20_000, seed=seed) for seed in (3, 3, 4))
    assert one.distinct[0].equals(again.distinct[0])
    assert not one.distinct[0].equals(other.distinct[0])
    assert 800 < len(one.ranks) < 1200


def test_all_rows_are_taken_where_there_are_few(spark: SparkSession) -> None:
    assert len(drawn(spark.range(100), "id", rows=100, total=100).ranks) == 100


def test_no_rows_make_an_empty_sample(spark: SparkSession) -> None:
    sample = drawn(spark.sql("SELECT 1 AS a, 'x' AS b WHERE false"), "a", "b", total=0)
    assert sample.ranks.shape == (0, 2)


def test_rows_know_their_partition(spark: SparkSession) -> None:
    frame = spark.sql("SELECT id, CASE WHEN id % 3 > 0 THEN id % 3 END AS p FROM range(30)")
    hashes = np.asarray(sorted(row[0] for row in frame.selectExpr("xxhash64(p)").distinct().collect()))
    sample = draw(frame, keys(frame, "id"), 30, 30, 0, "xxhash64(p)", hashes)
    assert np.bincount(sample.partitions).tolist() == [10, 10, 10]


def test_a_cut_is_the_shortest_text_that_parts_two_neighbours(spark: SparkSession) -> None:
    frame = spark.createDataFrame([("customer-00017",), ("customer-00023",)], "v string")
    sample = drawn(frame, "v")
    assert sample.cut_value(0, 2, "string") == b"customer-0002"
    assert sample.cut_value(0, 1, "string") == b"customer-00017"


@pytest.mark.parametrize("ddl", ["int", "string", "timestamp_ntz", "decimal(38, 2)"])
def test_cuts_are_plain_values(spark: SparkSession, ddl: str) -> None:
    frame = spark.sql(
        f"SELECT CAST(v AS {ddl}) v FROM VALUES ('1'), ('2') AS t(v)".replace("'1'", "'2024-01-01'")
        if "time" in ddl
        else f"SELECT CAST(v AS {ddl}) v FROM VALUES ('1'), ('2') AS t(v)"
    )
    sample = drawn(frame, "v")
    assert not isinstance(sample.cut_value(0, 1, keys(frame, "v")[0].carrier), pa.Scalar)


def test_a_sample_grows_with_the_files_and_is_capped_in_bytes(spark: SparkSession) -> None:
    narrow, wide = (keys(spark.sql("SELECT 1 AS a, 'x' AS s"), name) for name in ("a", "s"))
    assert wanted_rows(1, narrow) == LEAST_ROWS
    assert wanted_rows(10_000, narrow) == 3_000_000
    assert wanted_rows(16, narrow, cells=1 << 15) == 4 << 15
    assert wanted_rows(10**9, narrow) == MOST_BYTES // 16
    assert wanted_rows(10**9, wide) == MOST_BYTES // 64


@pytest.mark.parametrize(
    ("text", "bytes_of_a_key"), [("'x'", 64), ("repeat('ü', 500)", 256), ("repeat('x', 100)", 100)]
)
def test_of_long_text_fewer_rows_are_sampled(spark: SparkSession, text: str, bytes_of_a_key: int) -> None:
    frame = spark.sql(f"SELECT id, {text} AS s FROM range(100)")
    both = [*keys(frame, "id"), *keys(frame, "s")]
    assert rows_wanted_of(frame, both, 10**9) == MOST_BYTES // (16 + bytes_of_a_key)
    assert rows_wanted_of(frame, both, 10) == LEAST_ROWS
    assert rows_wanted_of(frame.limit(0), both, 10**9) == MOST_BYTES // 80


def test_arrow_carries_no_rows_with_their_types(spark: SparkSession) -> None:
    table = collect_arrow(spark.range(0))
    assert (table.num_rows, table.schema.field("id").type) == (0, pa.int64())


@given(st.lists(st.integers(1, 50), min_size=1, max_size=30), st.integers(1, 900), st.integers(-5, 5))
def test_parts_of_a_table_give_rows_by_their_share(counts: list[int], rows: int, seed: int) -> None:
    shares = sample_shares(counts, rows, seed)
    total = sum(counts)
    assert abs(sum(shares) - min(rows, total)) <= (rows < total)
    for share, count in zip(shares, counts, strict=True):
        assert 0 <= share <= count
        assert abs(share - count * min(1.0, rows / total)) <= 1
