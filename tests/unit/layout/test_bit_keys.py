from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.engine.local.fetched_keys import fetch
from dbt_zorder.engine.local.row_estimate import estimated_row_bytes
from dbt_zorder.layout.bit_keys import bit_values, bits_of
from dbt_zorder.layout.keys import key_of
from dbt_zorder.spark.columns import resolve
from tests.support import settings
from tests.unit.layout.frames import cast_values
from tests.unit.layout.test_keys import TYPES


@pytest.mark.parametrize(("zone", "ansi"), [("UTC", "true"), ("America/New_York", "false")])
@pytest.mark.parametrize(("name", "values"), TYPES, ids=[name for name, _ in TYPES])
def test_bits_keep_sparks_own_order(spark: SparkSession, zone: str, ansi: str, name: str, values: list[str]) -> None:
    with settings(spark, {"spark.sql.session.timeZone": zone, "spark.sql.ansi.enabled": ansi}):
        frame = spark.sql(cast_values(name, [*values, "NULL"]))
        bits = bits_of(resolve("v", frame.schema))
        pairs = frame.selectExpr("v", f"shiftleft(1L, 63) ^ {bits} AS k", f"{bits} AS bits")
        swapped = pairs.alias("a").crossJoin(pairs.alias("b")).where("a.v < b.v AND a.k > b.k")
        assert swapped.count() == 0
        assert pairs.where("v IS NULL AND bits <> 0").count() == 0
        assert pairs.where("v IS NOT NULL AND bits = 0").where("typeof(v) NOT RLIKE 'array|struct'").count() == 0


def test_text_of_any_collation_goes_by_its_bytes(spark: SparkSession) -> None:
    frame = spark.sql("SELECT 'B' COLLATE UTF8_LCASE AS v")
    assert frame.selectExpr(f"hex({bits_of(resolve('v', frame.schema))})").collect()[0][0] == "42" + "0" * 14


@pytest.mark.parametrize(("name", "values"), TYPES, ids=[name for name, _ in TYPES])
def test_bits_here_are_those_of_spark(spark: SparkSession, name: str, values: list[str]) -> None:
    frame = spark.sql(cast_values(name, [*values, "NULL"])).coalesce(1)
    if estimated_row_bytes(frame.schema) is None:
        return
    column = resolve("v", frame.schema)
    found = fetch(frame, [key_of(column)], 1 << 20)
    assert found is not None
    wanted = [row[0] for row in frame.selectExpr(bits_of(column)).collect()]
    assert bit_values(found.keys.column(0).combine_chunks(), column).tolist() == wanted
