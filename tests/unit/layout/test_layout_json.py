from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession

from dbt_zorder.engine.plan import plan_layout
from dbt_zorder.engine.spark.descent import apply_layout
from dbt_zorder.layout.layout_json import layout_from_json, layout_to_json
from dbt_zorder.layout.spec import LayoutSpec

COLUMNS = {
    "i": "id",
    "d": "cast(id / 7 as decimal(30, 5))",
    "f": "cast(case id % 5 when 0 then 'NaN' when 1 then 'Infinity' when 2 then '-Infinity' else id end as double)",
    "s": "concat('ü', id % 97)",
    "b": "cast(concat('x', id % 97) as binary)",
    "n": "cast(timestamp_seconds(id) as timestamp_ntz)",
    "ts": "timestamp_seconds(-id)",
    "day": "date_add(date'2000-01-01', cast(id as int))",
    "lapse": "interval '1' second * id",
    "null_one": "nullif(id % 3, 0)",
    "st": "named_struct('a.b', named_struct('c', id))",
}


@pytest.mark.parametrize("by", [[name] for name in COLUMNS if name != "st"] + [["s", "f", "d"], ["st.`a.b`.c", "i"]])
def test_a_layout_comes_back_as_it_was(spark: SparkSession, by: list[str]) -> None:
    df = spark.sql(
        f"SELECT {', '.join(f'{sql} AS {name}' for name, sql in COLUMNS.items())}, id % 3 AS p FROM range(900)"
    )
    layout = plan_layout(df, LayoutSpec(by=by, files=5, partition_by=["p"] if len(by) > 1 else []))
    text = json.dumps(layout_to_json(layout), allow_nan=False)
    again = layout_from_json(json.loads(text), df.schema)
    assert again is not None
    assert repr(again.levels) == repr(layout.levels)
    assert list(again.keys) == list(layout.keys)
    for name in ("first_file", "file_count", "partition_hashes"):
        assert np.array_equal(getattr(again, name), getattr(layout, name))
        assert getattr(again, name).dtype == getattr(layout, name).dtype
    assert [list(again.partition_columns), again.files, again.file_levels, again.rows] == [
        list(layout.partition_columns), layout.files, layout.file_levels, layout.rows
    ]  # fmt: skip
    assert sorted(map(len, apply_layout(df, again).select("i").rdd.glom().collect())) == sorted(
        map(len, apply_layout(df, layout).select("i").rdd.glom().collect())
    )


@pytest.mark.parametrize(
    ("curve", "encoding"), [("hilbert", "rank"), ("hilbert", "bits"), ("linear", "rank"), ("zorder", "bits")]
)
def test_a_curve_comes_back_as_it_was(spark: SparkSession, curve: str, encoding: str) -> None:
    df = spark.sql(
        f"SELECT {', '.join(f'{sql} AS {name}' for name, sql in COLUMNS.items())}, id % 3 AS p FROM range(900)"
    )
    by = ["s", "f", "b", "null_one"]
    layout = plan_layout(df, LayoutSpec(by=by, files=6, curve=curve, encoding=encoding, partition_by=["p"]))
    again = layout_from_json(json.loads(json.dumps(layout_to_json(layout), allow_nan=False)), df.schema)
    assert again is not None
    assert repr(again.levels) == repr(layout.levels)
    assert layout.curve is not None
    assert again.curve is not None
    assert repr(again.curve.boundaries or []) == repr(list(layout.curve.boundaries))
    assert again.curve.codes == [list(map(int, codes)) for codes in layout.curve.codes]
    placed, before = (apply_layout(df, one).select("i").rdd.glom().collect() for one in (again, layout))
    assert [[row.i for row in rows] for rows in placed] == [[row.i for row in rows] for rows in before]


def test_nan_and_infinity_survive_json(spark: SparkSession) -> None:
    df = spark.sql("SELECT cast(if(id < 34, 'NaN', if(id < 67, 'Infinity', '1')) as double) AS f FROM range(100)")
    saved = layout_to_json(plan_layout(df, LayoutSpec(by=["f"], files=3)))
    texts = {value for cuts in saved["levels"] for values in cuts.values() for value in values}
    assert "nan" in texts
    again = layout_from_json(saved, df.schema)
    assert again is not None
    assert any(isinstance(v, float) and math.isnan(v) for cuts in again.levels for vs in cuts.values() for v in vs)


@pytest.mark.parametrize(
    "other",
    ["SELECT 1L AS b", "SELECT 'x' AS a", "SELECT timestamp_seconds(1) AS a", "SELECT named_struct('a', 1L) AS s"],
)
def test_a_layout_of_other_columns_is_not_read(spark: SparkSession, other: str) -> None:
    df = spark.sql("SELECT id AS a FROM range(10)")
    saved = layout_to_json(plan_layout(df, LayoutSpec(by=["a"], files=2)))
    assert layout_from_json(saved, spark.sql(other).schema) is None


@pytest.mark.parametrize("broken", [{"format": 1}, {"format": 3}])
def test_a_layout_of_another_format_is_not_read(spark: SparkSession, broken: dict[str, Any]) -> None:
    df = spark.sql("SELECT id AS a FROM range(10)")
    saved = layout_to_json(plan_layout(df, LayoutSpec(by=["a"], files=2)))
    assert layout_from_json({**saved, **broken}, df.schema) is None


def test_no_layout_stays_none(spark: SparkSession) -> None:
    assert layout_from_json(None, spark.range(1).schema) is None


SQL = "reflect('java.lang.System', 'exit', 1)"
PLANTED: list[dict[str, Any]] = [
    *({key: wrong} for key in ("keys", "levels", "partition_columns", "runs") for wrong in (None, 1, "`a`", {"a": 1})),
    *({key: wrong} for key in ("first_file", "file_count", "partition_hashes") for wrong in (None, "1", ["1"], [1.5])),
    *({key: wrong} for key in ("files", "file_levels", "rows") for wrong in (None, SQL, -1, True, 1.5, [1], 1 << 64)),
    {"partition_columns": [SQL]}, {"partition_columns": [["a"]]}, {"file_levels": 40}, {"files": 1 << 40},
    {"first_file": []}, {"first_file": [0, 0, 99]}, {"levels": []}, {"levels": [{"0": []}]}, {"levels": [{"-1": [1]}]},
    {"levels": [{"9": [1]}]}, {"levels": [{"0": [SQL]}]}, {"levels": [["0"]]}, {"runs": [[0, SQL]]}, {"runs": [[9, 1]]},
    {"runs": [[0, -1]]}, {"runs": [["a", 1]]}, {"keys": [{"path": ["a"], "key": SQL, "carrier": "bigint"}]},
    *({"curve": {"curve": "hilbert", "encoding": "rank", "cuts_files": False, "bits": 3, "boundaries": [[1]],
                    "codes": [[0, 1]], **more}}
      for more in ({"curve": SQL}, {"encoding": SQL}, {"cuts_files": 1}, {"bits": SQL}, {"bits": 65},
                   {"codes": [[SQL]]}, {"boundaries": [[SQL]]}, {"boundaries": SQL}, {"codes": SQL})),
]  # fmt: skip


def test_a_saved_layout_that_nobody_saved_is_not_read(spark: SparkSession) -> None:
    df = spark.sql("SELECT id AS a FROM range(10)")
    saved = json.loads(json.dumps(layout_to_json(plan_layout(df, LayoutSpec(by=["a"], files=2)))))
    assert layout_from_json(saved, df.schema) is not None
    for planted in PLANTED:
        try:
            found = layout_from_json({**saved, **planted}, df.schema)
        except (KeyError, ValueError, TypeError, AttributeError, IndexError):
            continue
        assert found is None, planted
