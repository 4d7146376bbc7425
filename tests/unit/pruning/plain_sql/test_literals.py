from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.pruning.plain_sql.literals import exact_literal
from dbt_zorder.spark.arrow import collect_arrow
from tests.support import settings

VALUES = [
    "true",
    "cast(-128 as tinyint)",
    "cast(7 as smallint)",
    "-2147483648",
    "cast('-9223372036854775808' as bigint)",
    "9223372036854775807L",
    "cast('0.1' as float)",
    "cast('1.17549435E-38' as float)",
    "1e-300D",
    "double('-Infinity')",
    "0.1D + 0.2D",
    "cast(1.50 as decimal(9, 2))",
    "cast('-0.0000000001' as decimal(38, 10))",
    "cast('1e27' as decimal(38, 10))",
    "cast(0 as decimal(38, 38))",
    "date '0001-01-01'",
    "date '9999-12-31'",
    "date '1582-10-10'",
    "timestamp_micros(-62135596800000000)",
    "timestamp_micros(253402300799999999)",
    "timestamp_micros(-1)",
    "timestamp_seconds(1698537600 + 3 * 3600)",
    "timestamp_seconds(1698537600 + 4 * 3600)",
    "timestamp_ntz '2023-10-29 02:30:00.000001'",
    "timestamp_ntz '0001-01-01 00:00:00'",
    "''",
    "'it''s \\\\ a \"text\" \\n `of` ${many} -- kinds \U0001f600 /* é */'",
    "'\\0'",
    "x''",
    "x'00ff27'",
]


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/St_Johns"])
def test_a_literal_is_the_value_with_its_type(spark: SparkSession, zone: str) -> None:
    names = [f"v{number}" for number in range(len(VALUES))]
    for ansi, kind in (("true", "TIMESTAMP_NTZ"), ("false", "TIMESTAMP_LTZ")):
        session = {"spark.sql.session.timeZone": zone, "spark.sql.ansi.enabled": ansi, "spark.sql.timestampType": kind}
        with settings(spark, session):
            rows = spark.sql("select " + ", ".join(f"{v} as {name}" for v, name in zip(VALUES, names, strict=True)))
            values = collect_arrow(rows)
            literals = [str(exact_literal(values[field.name][0], field.dataType)) for field in rows.schema]
            again = spark.sql("select " + ", ".join(f"{v} as {n}" for v, n in zip(literals, names, strict=True)))
            assert [field.dataType for field in again.schema] == [field.dataType for field in rows.schema]
            assert collect_arrow(again).to_pylist() == values.to_pylist()
            assert all(v.startswith("CAST(") for v in literals)


@pytest.mark.parametrize(
    "value",
    [
        "0.0D", "cast('-0.0' as double)", "double('NaN')", "cast(0 as float)", "interval 1 day", "array(1)", "null",
        "timestamp_micros(-62135596800000001)", "' Today'", "'epoch'", "'now UTC'", "'09:00'", "'T9:00'",
        "repeat('x', 10001)", "named_struct('a', 1)",
    ],
)  # fmt: skip
def test_a_value_that_is_not_written_exactly(spark: SparkSession, value: str) -> None:
    rows = spark.sql(f"select {value} as v")
    assert exact_literal(collect_arrow(rows)["v"][0], rows.schema[0].dataType) is None


def test_null_has_its_type(spark: SparkSession) -> None:
    rows = spark.sql("select cast(null as decimal(7, 3)) as v")
    assert exact_literal(collect_arrow(rows)["v"][0], rows.schema[0].dataType) == "CAST(NULL AS DECIMAL(7, 3))"
