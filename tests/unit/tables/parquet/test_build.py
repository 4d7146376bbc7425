from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from dbt_zorder.engine.choose import RowSource
from dbt_zorder.engine.plan import plan_layout
from dbt_zorder.engine.spark.descent import TemporaryColumns, add_node
from dbt_zorder.errors import ColumnError, ConfigError
from dbt_zorder.layout.layout import Layout
from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.request import BuildRequest, readable_partitions
from dbt_zorder.spark.catalog import TableName, describe, schema_location
from dbt_zorder.tables.build import warn_of_many
from dbt_zorder.tables.parquet import build as table_build
from dbt_zorder.tables.parquet.build import build
from dbt_zorder.tables.parquet.stats_view import stats_table
from dbt_zorder.tables.report import BuildReport
from dbt_zorder.tables.version import is_version
from tests.support import same_rows, settings, versions

pytestmark = pytest.mark.usefixtures("way")

SPILL = "spark.shuffle.spill.numElementsForceSpillThreshold"

QUERY = "SELECT id, pmod(hash(id), 100) AS a, concat('k', id % 10) AS s FROM range(500)"


def request(table: TableName, by: tuple[str, ...] = ("a", "s"), *, files: int = 4, **more: Any) -> BuildRequest:
    partition_by = more.pop("partition_by", ())
    return BuildRequest(table, LayoutSpec(by=by, files=files, partition_by=partition_by), **more)


def run(spark: SparkSession, table: TableName, query: str = QUERY, **more: Any) -> BuildReport:
    return build(spark, spark.sql(query), request(table, **more))


def test_a_first_build_makes_the_table_and_its_stats(spark: SparkSession, table: TableName) -> None:
    report = run(
        spark, table, stats_columns=("id",), comment="about", column_comments={"A": "col"}, properties={"x": "y"}
    )
    assert same_rows(spark.table(table.sql), spark.sql(QUERY))
    assert (report.summary.files, report.summary.rows) == (4, 500)
    assert list(report.summary.point_query_files) == ["a", "s"]
    assert set(report.seconds) == {"query", "sample", "write", "stats", "swap"}
    assert versions(spark, table) == [report.version]
    info = describe(spark, table)
    assert info is not None
    assert (info.kind, info.comment, info.columns[1][2]) == ("EXTERNAL", "about", "col")
    assert info.location.endswith(report.version)
    stats = spark.table(stats_table(table).sql)
    assert stats.selectExpr("sum(row_count)", "sum(file_size)").first() == (500, report.summary.bytes)
    assert stats.selectExpr("columns.*").columns == ["a", "s", "id"]
    assert [row[0] for row in stats.select("version").distinct().collect()] == [report.version]


@contextlib.contextmanager
def spilling(spark: SparkSession, rows: int) -> Iterator[Callable[[], int]]:
    """Let each sort in Spark go to disk whenever it holds so many rows; gives what tells the bytes that went there."""
    jvm, context = cast("Any", spark)._jvm, cast("Any", spark.sparkContext)
    conf = jvm.org.apache.spark.SparkEnv.get().conf()

    def stages() -> dict[int, int]:
        context._jsc.sc().listenerBus().waitUntilEmpty()
        quantiles = context._gateway.new_array(jvm.double, 0)
        store = context._jsc.sc().statusStore()
        found = store.stageList(None, False, False, quantiles, jvm.java.util.ArrayList())
        of_stages = map(found.apply, range(found.size()))
        return {int(stage.stageId()): int(stage.diskBytesSpilled()) for stage in of_stages}

    last = max(stages(), default=-1)
    conf.set(SPILL, str(rows))
    try:
        yield lambda: sum(spilled for stage, spilled in stages().items() if stage > last)
    finally:
        conf.remove(SPILL)


@pytest.mark.parametrize("spills", [False, True])
@pytest.mark.parametrize("open_files", [0, 1, 2, 9, 10, 100])
@pytest.mark.parametrize("files", [1, 2])
def test_rows_keep_their_order_in_the_files_of_partitions(
    spark: SparkSession, table: TableName, open_files: int, files: int, spills: bool, way: str
) -> None:
    """Whether Spark may keep the files of all nine partitions open, or of some, or none; and wherever it sorts them."""
    query = (
        "SELECT pmod(hash(id), 100000) AS a, id AS s, if(id % 9 = 0, NULL, concat('p', id % 9)) AS p FROM range(9000)"
    )
    wanted = replace(
        request(table, files=files), spec=LayoutSpec(["a", "s"], files, partition_by=["p"], curve="linear")
    )
    with contextlib.ExitStack() as stack:
        stack.enter_context(settings(spark, {"spark.sql.maxConcurrentOutputFileWriters": str(open_files)}))
        spilled = stack.enter_context(spilling(spark, 150)) if spills else lambda: 0
        report = build(spark, spark.sql(query), wanted)
        assert (spilled() > 0) == (spills and way == "by Spark")
    assert same_rows(spark.table(table.sql).select("a", "s", "p"), spark.sql(query))
    assert report.summary.files == 9 * files
    info = describe(spark, table)
    assert info is not None
    for file in Path(info.location.removeprefix("file:")).glob("p=*/*.parquet"):
        values = pq.read_table(file, partitioning=None)["a"].to_pylist()
        assert values == sorted(values)


@pytest.mark.parametrize("open_files", [2, 100])
@pytest.mark.parametrize(("files", "partitions"), [(3, 3), (1, 9)])
def test_what_goes_to_disk_keeps_the_order_of_the_tree_in_the_files_of_partitions(
    spark: SparkSession,
    table: TableName,
    open_files: int,
    files: int,
    partitions: int,
    way: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Their values do not show the order of a tree, which is that of its cells: a build that needs no disk has it, too.

    Large partitions have a task for each file; nine small ones share tasks, which sort them apart if they must.
    """
    part = f"if(id % {partitions} = 0, NULL, concat('p', id % {partitions}))"
    query = f"SELECT hash(id) AS a, sha1(string(id)) AS s, {part} AS p FROM range(9000)"
    spec = LayoutSpec(["a", "s"], files, partition_by=["p"])
    layouts: list[Layout] = []
    write_data = table_build.write_data

    def noted(source: RowSource, layout: Layout, *more: Any) -> None:
        layouts.append(layout)
        write_data(source, layout, *more)

    monkeypatch.setattr(table_build, "write_data", noted)

    def built(spills: bool) -> list[list[tuple[Any, ...]]]:
        one = replace(table, identifier=f"{table.identifier}_{spills}")
        with contextlib.ExitStack() as stack:
            stack.enter_context(settings(spark, {"spark.sql.maxConcurrentOutputFileWriters": str(open_files)}))
            spilled = stack.enter_context(spilling(spark, 150)) if spills else lambda: 0
            assert build(spark, spark.sql(query), BuildRequest(one, spec)).summary.rows == 9000
            assert (spilled() > 0) == (spills and way == "by Spark")
        return rows_by_file(spark, one)

    spilt, kept = built(spills=True), built(spills=False)
    if way != "by Spark":
        assert spilt == kept
    # NULL has a tree by the name of its folder
    frame, one = readable_partitions(spark.sql(query), BuildRequest(table, spec)), layouts[0]
    names = TemporaryColumns.beside(frame)
    cells = {(row[0], row[1]): row[2] for row in add_node(frame, one, names).select("a", "s", names.node).collect()}
    assert len(cells) == 9000, "no two rows have the same keys"
    # Spark may let rows of one cell swap places where it brings together what lay on disk
    in_cells = [[[cells[row[1:]] for row in rows] for rows in found] for found in (spilt, kept)]
    assert in_cells[0] == in_cells[1]
    assert all(rows == sorted(rows) and len({*rows}) >= 12 for rows in in_cells[0])
    assert [sorted(rows) for rows in spilt] == [sorted(rows) for rows in kept]
    assert len(spilt) == files * partitions


def rows_by_file(spark: SparkSession, table: TableName) -> list[list[tuple[Any, ...]]]:
    """Return the rows of each file of a partitioned table in their order, behind the name of its folder.

    Files come by the least of their rows, as those of a tree have no names that would last.
    """
    info = describe(spark, table)
    assert info is not None
    files = Path(info.location.removeprefix("file:")).glob("p=*/*.parquet")
    rows = ((file.parent.name, pq.read_table(file, partitioning=None).to_pylist()) for file in files)
    return sorted(([(folder, *row.values()) for row in found] for folder, found in rows), key=min)


def test_a_rebuild_serves_the_new_rows_and_keeps_the_version_before(spark: SparkSession, table: TableName) -> None:
    first = run(spark, table)
    second = run(spark, table, QUERY.replace("500", "700"))
    assert spark.table(table.sql).count() == 700
    assert spark.table(stats_table(table).sql).selectExpr("sum(row_count)").first() == (700,)
    assert versions(spark, table) == [first.version, second.version]
    assert second.collected == []


def test_old_versions_go_when_they_are_beyond_both_limits(spark: SparkSession, table: TableName) -> None:
    built = [run(spark, table, files=1, keep_versions=1, grace_hours=0).version for _ in range(3)]
    assert versions(spark, table) == built[1:]
    run(spark, table, files=1, keep_versions=0, grace_hours=24)
    assert len(versions(spark, table)) == 3


@pytest.mark.parametrize(
    "before", ["CREATE TABLE {t} USING parquet AS SELECT 1 AS other", "CREATE VIEW {t} AS SELECT 1 AS other"]
)
def test_what_dbt_spark_built_is_taken_over(spark: SparkSession, table: TableName, before: str) -> None:
    spark.sql(before.format(t=table.sql))
    folder = Path(schema_location(spark, table.schema).removeprefix("file:")) / table.identifier
    run(spark, table)
    assert same_rows(spark.table(table.sql), spark.sql(QUERY))
    assert not folder.exists(), "a managed table's files go with it"


def test_a_model_may_read_its_own_table(spark: SparkSession, table: TableName) -> None:
    spark.sql(f"CREATE TABLE {table.sql} USING parquet AS {QUERY}")
    for rows in (1000, 2000):
        query = f"SELECT id, a, s FROM {table.sql} UNION ALL SELECT id + 1, a, s FROM {table.sql}"
        assert run(spark, table, query).summary.rows == rows
        assert spark.table(table.sql).count() == rows


@pytest.mark.parametrize("partition_by", [("s",), ("S", "p")])
def test_partition_columns_go_last_and_are_read_back(
    spark: SparkSession, table: TableName, partition_by: tuple[str, ...]
) -> None:
    query = "SELECT id % 3 AS p, if(id % 4 = 0, null, concat('x/', id % 4, ' ü=%')) AS s, id FROM range(200)"
    for _ in range(2):
        report = run(spark, table, query, by=("id",), files=2, partition_by=partition_by)
    wanted = [name for name in ("p", "s", "id") if name not in {p.lower() for p in partition_by}]
    assert spark.table(table.sql).columns == wanted + [p.lower() for p in partition_by]
    assert same_rows(spark.table(table.sql).select("p", "s", "id"), spark.sql(query))
    assert report.summary.files == 2 * spark.sql(query).select(*partition_by).distinct().count()


@pytest.mark.parametrize(
    "values",
    [
        {"spark.sql.files.maxRecordsPerFile": "10"},
        {"spark.sql.shuffle.partitions": "1", "spark.sql.ansi.enabled": "true"},
    ],
)
def test_session_settings_do_not_cut_files_apart(spark: SparkSession, table: TableName, values: dict[str, str]) -> None:
    with settings(spark, values):
        assert run(spark, table).summary.files == 4


@pytest.mark.parametrize("query", [QUERY + " WHERE false", "SELECT 1 AS a, 's' AS s"])
def test_few_rows_and_none_make_a_table(spark: SparkSession, table: TableName, query: str) -> None:
    report = run(spark, table, query)
    assert report.summary.rows == spark.table(table.sql).count()
    assert spark.table(table.sql).schema == spark.table(table.sql).schema
    assert run(spark, table).summary.rows == 500


def test_a_root_of_ones_own_is_used(spark: SparkSession, table: TableName, tmp_path: Path) -> None:
    report = run(spark, table, location_root=str(tmp_path / "r x% ü"))
    assert (tmp_path / "r x% ü" / f"{table.identifier}__zorder" / report.version).is_dir()
    assert spark.table(table.sql).count() == 500


def test_a_relative_root_is_one_place_to_writer_and_catalog(spark: SparkSession, table: TableName) -> None:
    run(spark, table, location_root="sub/dir")
    assert spark.table(table.sql).count() == 500


@pytest.mark.parametrize("root", ["{i}", "./{i}/", "{i}/deeper", "{folder}"])
def test_a_root_in_the_folder_of_the_table_before_is_refused(spark: SparkSession, table: TableName, root: str) -> None:
    spark.sql(f"CREATE TABLE {table.sql} USING parquet AS {QUERY}")
    info = describe(spark, table)
    assert info is not None
    with pytest.raises(ConfigError, match=f"{table}: location_root is .*, which lies in the folder of the table"):
        run(spark, table, location_root=root.format(i=table.identifier, folder=info.location.removeprefix("file:")))
    assert spark.table(table.sql).count() == 500
    assert list(Path(info.location.removeprefix("file:")).glob("*__zorder")) == []
    run(spark, table, location_root=f"{table.identifier}_beside")
    assert spark.table(table.sql).count() == 500


def test_writer_options_reach_the_files(spark: SparkSession, table: TableName) -> None:
    run(spark, table, options={"compression": "gzip"})
    assert all(file.endswith(".gz.parquet") for file in spark.table(table.sql).inputFiles())


def test_what_is_wrong_with_a_request_is_found_first(spark: SparkSession, table: TableName) -> None:
    with pytest.raises(ColumnError, match="produces the column 'A' twice"):
        run(spark, table, "SELECT 1 AS a, 2 AS A", by=("a",))
    assert describe(spark, table) is None
    assert versions(spark, table) == []


def test_text_literals_of_another_kind_are_refused_before_anything_is_done(
    spark: SparkSession, table: TableName
) -> None:
    escaped = settings(spark, {"spark.sql.parser.escapedStringLiterals": "true"})
    with escaped, pytest.raises(ConfigError, match="escapedStringLiterals is true in this Spark session"):
        build(spark, spark.range(3).toDF("id"), BuildRequest(table, LayoutSpec(by=["id"])))
    assert describe(spark, table) is None


@pytest.mark.parametrize(("tasks", "warned"), [(10_000, False), (10_001, True)])
def test_more_files_than_a_shuffle_takes_well_are_a_warning(
    spark: SparkSession, table: TableName, caplog: pytest.LogCaptureFixture, tasks: int, warned: bool
) -> None:
    layout = replace(plan_layout(spark.range(9).toDF("id"), LayoutSpec(by=["id"], files=2)), files=tasks)
    with caplog.at_level("WARNING", "dbt_zorder"):
        warn_of_many(layout, table)
    assert (f"{table} is to be 10,001 files" in caplog.text) == bool(caplog.records) == warned


def test_versions_have_names_of_their_kind(spark: SparkSession, table: TableName) -> None:
    assert is_version(run(spark, table).version)
