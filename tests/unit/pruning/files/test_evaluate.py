from __future__ import annotations

from dataclasses import replace

from pyspark.sql import SparkSession
from pyspark.sql.types import IntegerType

from dbt_zorder.pruning.condition.translate import Translator
from dbt_zorder.pruning.files.evaluate import decide, stats_names
from dbt_zorder.pruning.files.stats_source import check_shape
from dbt_zorder.pruning.predicate.names import Names
from dbt_zorder.pruning.predicate.parse import parse
from dbt_zorder.pruning.predicate.read import read
from dbt_zorder.pruning.predicate.tree import Column

FILES = """
    SELECT file_path, cast(file_size AS bigint) AS file_size, cast(row_count AS bigint) AS row_count, 'v' AS version,
        named_struct('a', named_struct('min_value', low, 'max_value', high, 'null_count', 0L)) AS columns
    FROM VALUES ('kept', 10, 3, 1, 5), ('out', 20, 4, 6, 9), ('out too', 0, 1, 7, 7), ('twice', 30, 5, 8, 9),
        ('twice', 30, 5, 8, 9), (cast(null AS string), 40, 6, 8, 9), ('no size', null, 7, 8, 9),
        ('no bounds', 50, 8, null, null) AS t(file_path, file_size, row_count, low, high)
"""


def test_few_files_are_judged_here_as_many_are_by_spark(spark: SparkSession) -> None:
    """Some stats are such as no build writes; what is excluded must be equal even then."""
    stats = check_shape(spark.sql(FILES))
    assert stats.frame is not None
    schema = spark.sql("SELECT 1 AS a").schema
    parsed = parse("a = 2 AND a > 0")
    assert parsed is not None
    tree = read(parsed, Names(schema, False))
    columns = [Column(("a",), IntegerType())]
    names = stats_names(columns)
    types = {name: IntegerType() for name in ("TRUE", "2", "0")}
    condition = Translator(names, types).translate(tree)
    for each in (False, True):
        no_files = check_shape(stats.frame.limit(0))
        assert decide(replace(no_files, is_local=True), condition, names, each=each) == decide(
            no_files, condition, names, each=each
        )
        by_spark = decide(stats, condition, names, each=each)
        here = decide(replace(stats, is_local=True), condition, names, each=each)
        assert {path for path, _ in here.excluded} == {"out", "out too"}
        for one in ("files", "rows", "bytes", "kept_files", "kept_rows", "kept_bytes", "ambiguous"):
            assert getattr(here, one) == getattr(by_spark, one), one
        assert sorted(here.excluded) == sorted(by_spark.excluded)
        assert list(here.excluded_by) == list(by_spark.excluded_by)
        assert sorted(here.known, key=str) == sorted(by_spark.known, key=str)
        assert sorted(here.kept_paths) == sorted(by_spark.kept_paths)
