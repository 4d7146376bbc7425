from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from dbt_zorder.cluster import cluster
from dbt_zorder.errors import ColumnError, ConfigError
from dbt_zorder.layout.sample import LEAST_ROWS
from tests.support import needs_spark_4, same_rows, settings

DATA = """
    SELECT id, pmod(hash(id), 1000) AS a, sha1(string(id % 700)) AS s, CASE WHEN id % 6 > 0 THEN id % 6 END AS p,
      CASE WHEN id % 3 > 0 THEN concat('p ', id % 3, '/ü=%') END AS q
    FROM range(6000)
"""


@pytest.fixture(scope="module")
def frame(spark: SparkSession, database: str) -> DataFrame:
    spark.sql(f"CREATE TABLE {database}.data USING parquet AS {DATA}")
    return spark.table(f"{database}.data")


def data_files(path: Path) -> list[Path]:
    return sorted(path.rglob("*.parquet"))


@pytest.mark.parametrize("files", [1, 2, 16, 23])
@pytest.mark.parametrize("by", ["a", ["a", "s"], ["id", "a", "s", "p"]])
def test_every_row_is_written_once_into_exactly_so_many_files(
    spark: SparkSession, frame: DataFrame, tmp_path: Path, files: int, by: str | list[str]
) -> None:
    clustered = cluster(frame, by, files=files)
    assert clustered.schema == frame.schema
    clustered.write.parquet(str(tmp_path / "out"))
    written = spark.read.parquet(str(tmp_path / "out"))
    assert len(data_files(tmp_path / "out")) == files
    assert same_rows(written, frame)


@pytest.mark.parametrize(
    "values",
    [
        {"spark.sql.shuffle.partitions": "1"},
        {"spark.sql.shuffle.partitions": "3", "spark.sql.adaptive.enabled": "false"},
        {"spark.sql.adaptive.coalescePartitions.minPartitionSize": "1gb"},
        {"spark.sql.ansi.enabled": "true"},
        {"spark.sql.caseSensitive": "true"},
        {"spark.sql.codegen.wholeStage": "false"},
    ],
    ids=lambda values: next(iter(values)),
)
def test_no_session_setting_changes_the_files(
    spark: SparkSession, frame: DataFrame, tmp_path: Path, values: dict[str, str]
) -> None:
    with settings(spark, values):
        cluster(frame, ["a", "s"], files=9).write.parquet(str(tmp_path / "out"))
    assert len(data_files(tmp_path / "out")) == 9
    assert same_rows(spark.read.parquet(str(tmp_path / "out")), frame)


@pytest.mark.parametrize("partition_by", ["p", "q", ["q", "p"]])
def test_partitions_with_nulls_get_so_many_files_each(
    spark: SparkSession, frame: DataFrame, tmp_path: Path, partition_by: str | list[str]
) -> None:
    names = [partition_by] if isinstance(partition_by, str) else partition_by
    clustered = cluster(frame, ["a", "s"], files=2, partition_by=partition_by)
    clustered.write.partitionBy(*names).parquet(str(tmp_path / "out"))
    written = spark.read.schema(frame.schema).parquet(str(tmp_path / "out")).select(*frame.columns)
    folders = {file.parent for file in data_files(tmp_path / "out")}
    assert len(folders) == frame.select(*names).distinct().count()
    assert len(data_files(tmp_path / "out")) == 2 * len(folders)
    assert same_rows(written, frame)


def test_rows_keep_their_order_in_partitioned_files(spark: SparkSession, frame: DataFrame, tmp_path: Path) -> None:
    """Spark's own sort for partitioned writes must not undo the order: with one column it is the column's own."""
    cluster(frame, "a", files=1, partition_by="q").write.partitionBy("q").parquet(str(tmp_path / "out"))
    written = spark.read.parquet(str(tmp_path / "out")).select(f.input_file_name().alias("file"), "a").collect()
    for file in {row["file"] for row in written}:
        values = [row["a"] for row in written if row["file"] == file]
        blocks = [
            max(values[i : i + 100]) <= min(values[i + 200 :], default=1000) + 40
            for i in range(0, len(values) - 200, 100)
        ]
        assert all(blocks)


def test_the_same_seed_gives_the_same_files(spark: SparkSession, frame: DataFrame) -> None:
    def content(seed: int) -> list[tuple[int, int]]:
        rows = cluster(frame, ["a", "s"], files=6, seed=seed).select(f.spark_partition_id(), "id").collect()
        return sorted((row[0], row[1]) for row in rows)

    assert content(5) == content(5)


@pytest.mark.parametrize(("curve", "encoding"), [("zorder", "rank"), ("hilbert", "rank"), ("linear", "rank")])
def test_a_seed_tells_which_rows_are_drawn_and_thereby_the_files(
    spark: SparkSession, database: str, curve: str, encoding: str
) -> None:
    rows = 3 * LEAST_ROWS
    spark.sql(
        f"CREATE TABLE IF NOT EXISTS {database}.many USING parquet AS "
        f"SELECT id, hash(id) AS a, sha1(string(id)) AS s FROM range(0, {rows}, 1, 2)"
    )
    frame = spark.table(f"{database}.many")

    def content(seed: int) -> list[tuple[int, int]]:
        clustered = cluster(frame, ["a", "s"], files=5, seed=seed, curve=curve, encoding=encoding)
        return [(row[0], row[1]) for row in clustered.select(f.spark_partition_id(), "id").collect()]

    first, again, other = content(5), content(5), content(6)
    assert first == again, "the same rows in the same files and in the same order"
    assert sorted(first) != sorted(other), "another seed draws other rows, and its cuts lie elsewhere"
    assert len(first) == len({*first}) == rows


@pytest.mark.parametrize(
    "name",
    [
        "a.b",
        "it's",
        "sp ace",
        "ünïcödé 漢",
        "UPPER",
        "tick`ed",
        'dou"ble',
        "select",
        "a,b;c",
        "x=y",
        "__zorder_key0",
        "_metadata",
        "back\\slash",
        "$d",
    ],
)
def test_columns_may_be_called_anything(spark: SparkSession, tmp_path: Path, name: str) -> None:
    frame = spark.range(300).withColumnRenamed("id", name).withColumn("other", f.lit(1))
    clustered = cluster(frame, ["`" + name.replace("`", "``") + "`", "other"], files=3)
    assert clustered.columns == [name, "other"]
    clustered.write.parquet(str(tmp_path / "out"))
    assert len(data_files(tmp_path / "out")) == 3
    assert same_rows(spark.read.parquet(str(tmp_path / "out")), frame)


@pytest.mark.parametrize(
    ("query", "by", "files"),
    [
        ("SELECT id FROM range(0)", "id", 1),
        ("SELECT id FROM range(1)", "id", 1),
        ("SELECT CAST(NULL AS int) AS a, id FROM range(40)", "a", 4),
        ("SELECT 7 AS a, id FROM range(4000)", "a", 4),
        ("SELECT id % 2 AS a, id FROM range(4000)", "a", 4),
        ("SELECT named_struct('x', named_struct('y', id)) AS s FROM range(40)", "s.x.y", 4),
        ("SELECT CASE WHEN id % 2 = 0 THEN named_struct('y', id) END AS s FROM range(40)", "s.y", 4),
        ("SELECT array(id, 1) AS v FROM range(40)", "v", 4),
        pytest.param(
            "SELECT CAST(id AS string) COLLATE UTF8_LCASE AS v FROM range(40)", "v", 4, marks=needs_spark_4
        ),
        ("SELECT INTERVAL '1' DAY * id AS v FROM range(40)", "v", 4),
        ("SELECT INTERVAL '1' MONTH * id AS v FROM range(40)", "v", 4),
    ],
)  # fmt: skip
def test_odd_data_loses_no_row(spark: SparkSession, query: str, by: str, files: int) -> None:
    frame = spark.sql(query)
    clustered = cluster(frame, by, files=4)
    assert clustered.rdd.getNumPartitions() == files
    assert same_rows(clustered, frame)


@pytest.mark.parametrize("hitter", [0.4, 0.9])
@pytest.mark.parametrize("files", [2, 8, 16, 60])
@pytest.mark.parametrize("by", ["a", ["a", "b"], ["b", "a", "c"]])
@pytest.mark.parametrize("value", ["5000", "0", "NULL"])
def test_a_value_that_holds_much_makes_no_giant_and_no_empty_file(
    spark: SparkSession, hitter: float, files: int, by: str | list[str], value: str
) -> None:
    """Found were 0.76 to 1.28 times the mean: what shares such rows out are further columns, or a hash of the row."""
    heavy = f"CASE WHEN id < {int(hitter * 20_000)} THEN {value} ELSE pmod(hash(id), 10000) END"
    others = "pmod(hash(id, 7), 10000) AS b, pmod(hash(id, 8), 100) AS c"
    frame = spark.sql(f"SELECT id, {heavy} AS a, {others} FROM range(20000)")
    sizes = [row[1] for row in cluster(frame, by, files=files).groupBy(f.spark_partition_id()).count().collect()]
    assert len(sizes) == files
    assert max(sizes) <= 1.4 * 20_000 / files
    assert min(sizes) >= 0.65 * 20_000 / files


def test_a_query_that_is_random_loses_no_row(spark: SparkSession, frame: DataFrame) -> None:
    noisy = frame.withColumn("r", f.rand())
    assert sorted(row[0] for row in cluster(noisy, ["r", "a"], files=5).select("id").collect()) == list(range(6000))


def test_what_cannot_be_done_is_an_error_before_any_data_is_read(spark: SparkSession) -> None:
    unread = spark.sql("SELECT raise_error('read') AS x, id, map(1, id) AS m FROM range(3)")
    with pytest.raises(ColumnError, match="Did you mean 'id'"):
        cluster(unread, "idd")
    with pytest.raises(ColumnError, match="cannot order"):
        cluster(unread, "m")
    with pytest.raises(ConfigError, match="Between 1 and 8"):
        cluster(unread, [])
    for no_text in (f.col("id"), [f.col("id")], 1, None):
        with pytest.raises(ColumnError, match="named by a text, like 'customer_id'; given was "):
            cluster(unread, no_text)  # type: ignore[arg-type]


@pytest.mark.parametrize("by", ["s", ["s", "a"], "v"])
@pytest.mark.parametrize("curve", ["zorder", "linear"])
def test_what_only_begins_with_an_order_goes_by_its_beginning(
    spark: SparkSession, tmp_path: Path, by: str | list[str], curve: str
) -> None:
    query = "named_struct('x', id % 100, 'm', map(1, id)) AS s"
    frame = spark.sql(f"SELECT id AS a, {query}, array({query.removesuffix(' AS s')}) AS v FROM range(3000)")
    cluster(frame, by, files=4, curve=curve).write.parquet(str(tmp_path / "out"))
    first = "s.x" if "s" in by else "v[0].x"
    spans = (
        spark.read.parquet(str(tmp_path / "out"))
        .groupBy(f.input_file_name())
        .agg(f.max(f.expr(first)) - f.min(f.expr(first)), f.count("*"))
    )
    found = spans.collect()
    assert sum(row[2] for row in found) == 3000
    assert len(found) == 4
    assert max(row[1] for row in found) <= 60
    # measured in the same order, where no number of files is given
    assert cluster(frame, by, curve=curve).count() == 3000


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"files": 0}, "'files' must be a positive whole number, up to 2,147,483,647; given was 0."),
        ({"files": 2.5}, "given was 2.5"),
        ({"page_rows": -5}, "'page_rows' must be a positive whole number, up to 2,147,483,647; given was -5."),
        ({"page_rows": 10**400}, "'page_rows' must be"),
        ({"seed": "x"}, "'seed' must be a whole number of 64 bits; given was 'x'."),
        ({"seed": 1 << 63}, "'seed' must be"),
        ({"weights": [1, 2], "curve": "hilbert"}, "'weights' has no effect with the curve 'hilbert'"),
        ({"encoding": "bits", "curve": "linear"}, "'encoding' has no effect with the curve 'linear'"),
        ({"file_size": "-5MB"}, "given was '-5MB'"),
        ({"weights": [1]}, "'weights' must be 2 positive numbers, one a column; given was [1]."),
        ({"weights": [1, 0]}, "given was [1, 0]"),
    ],
)
def test_a_number_out_of_range_is_one_sentence(frame: DataFrame, wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(said)):
        cluster(frame, ["a", "s"], **wrong)


def test_a_column_that_weighs_more_is_cut_more_often(spark: SparkSession, frame: DataFrame, tmp_path: Path) -> None:
    cluster(frame, ["a", "id"], files=16, weights=[8, 1]).write.parquet(str(tmp_path / "out"))
    written = spark.read.parquet(str(tmp_path / "out")).groupBy(f.input_file_name())
    spans = written.agg(f.max("a") - f.min("a"), f.max("id") - f.min("id")).collect()
    assert max(row[1] for row in spans) < 1000 / 6
    assert min(row[2] for row in spans) > 6000 / 4
