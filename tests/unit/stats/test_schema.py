from __future__ import annotations

from pyspark.sql.types import DecimalType, StringType

from dbt_zorder.stats.schema import stats_schema


def test_the_bounds_of_a_column_have_its_own_type() -> None:
    schema = stats_schema({"a": DecimalType(38, 2), "s.x": StringType()})
    assert schema.simpleString() == (
        "struct<file_path:string,file_size:bigint,row_count:bigint,version:string,columns:struct<"
        "a:struct<min_value:decimal(38,2),max_value:decimal(38,2),null_count:bigint>,"
        "s.x:struct<min_value:string,max_value:string,null_count:bigint>>>"
    )
