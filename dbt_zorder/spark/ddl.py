"""Write types as DDL text."""

from __future__ import annotations

from pyspark.sql.types import ArrayType, DataType, MapType, StructType, TimestampType

from dbt_zorder.spark.sql import quote_name


def type_ddl(data_type: DataType) -> str:
    """Return a type as DDL text with the same meaning in every session, unlike ``simpleString``.

    Every struct field name is quoted. A ``timestamp`` becomes ``timestamp_ltz``, because its meaning depends on the
    setting ``spark.sql.timestampType``.
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
