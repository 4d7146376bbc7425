from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from dbt_zorder.errors import ColumnError
from dbt_zorder.layout.keys import key_of
from dbt_zorder.spark.columns import ResolvedColumn
from dbt_zorder.spark.ordering import is_ordered

PLAIN = """true, 1Y, 1S, 1, 1L, 1F, 1D, 1BD, 'x', X'01', DATE'2020-01-01', TIMESTAMP'2020-01-01 00:00:00',
    TIMESTAMP_NTZ'2020-01-01 00:00:00', INTERVAL '1' DAY, INTERVAL '1' MONTH, map(1, 2), make_interval(1)"""


def test_it_is_sparks_own_word(spark: SparkSession) -> None:
    row = spark.sql(f"SELECT {PLAIN}").toDF(*(f"c{number}" for number in range(17)))
    inside = [f.array(name) for name in row.columns] + [f.struct(f.lit(1), name) for name in row.columns]
    frame = row.select(*row.columns, *(one.alias(f"n{number}") for number, one in enumerate(inside)))
    for field in frame.schema.fields:
        try:
            frame.select(f.min(field.name))
        except AnalysisException:
            assert not is_ordered(field.dataType), field
        else:
            assert is_ordered(field.dataType), field


def test_what_is_not_nested_is_ordered_where_it_can_be_a_key(spark: SparkSession) -> None:
    for field in spark.sql(f"SELECT {PLAIN}").schema.fields:
        column = ResolvedColumn((field.name,), field.dataType)
        if is_ordered(field.dataType):
            assert key_of(column).carrier
        else:
            with pytest.raises(ColumnError, match="which Spark cannot order"):
                key_of(column)
