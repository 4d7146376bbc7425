"""Types as the text of DDL."""

from __future__ import annotations

from pyspark.sql.types import ArrayType, DataType, MapType, StructType, TimestampType

from dbt_zorder.spark.sql import quote_name


def type_ddl(data_type: DataType) -> str:
    """Return a type as DDL text that means it in every session, unlike ``simpleString``.

    Every struct field name is quoted; what ``timestamp`` means is a setting, ``spark.sql.timestampType``.
    """
    if isinstance(data_type, StructType):
        fields = ", ".join(f"{quote_name(field.name)}: {type_ddl(field.dataType)}" for field in data_type.fields)
        return f"STRUCT<{fields}>"
    if isinstance(data_type, ArrayType):
        return f"ARRAY<{type_ddl(data_type.elementType)}>"
    if isinstance(data_type, MapType):
        return f"MAP<{type_ddl(data_type.keyType)}, {type_ddl(data_type.valueType)}>"
    if isinstance(data_type, TimestampType):
        return "timestamp_ltz"
    return data_type.simpleString()
