from __future__ import annotations

import json

from pyspark.sql import SparkSession

from dbt_zorder.pruning import explain


def test_counts_what_each_part_excludes(spark: SparkSession, table: str) -> None:
    explained = explain(spark, table, "a = 5 and b < 500 and d < current_date and x > -1")
    assert [part.excluded_files for part in explained.parts] == [7, 4, None, 0]
    assert "moment" in explained.parts[2].reason
    assert (explained.files_read, explained.files_total, explained.fresh) == (1, 8, True)
    assert explained.rows_total == 1000
    assert explained.rows_read is not None
    assert explained.rows_read < 200
    assert json.loads(json.dumps(explained.to_dict()))["parts"][0]["text"] == "`a` = 5"


def test_reads_like_a_table(spark: SparkSession, table: str) -> None:
    text = str(explain(spark, table, "a = 5 and d < current_date"))
    assert "files │ 1" in text.replace("  ", " ")
    assert "statistics are fresh" in text
    assert "depends on the moment" in text


def test_says_why_all_is_read(spark: SparkSession, table: str) -> None:
    explained = explain(spark, table, "array_contains(array(s), 'k') or a = 5")
    assert explained.files_read == 8
    assert "array_contains()" in explained.reason


def test_a_long_predicate_stands_in_one_line(spark: SparkSession, table: str) -> None:
    where = f"a in ({', '.join(map(str, range(80)))})"
    assert str(explain(spark, table, where)).splitlines()[0].endswith(f": {where}")
