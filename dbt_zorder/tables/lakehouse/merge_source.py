"""Fit the nested columns of a MERGE to its table, after the table was given the new fields."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import ArrayType, MapType, StructField, StructType

from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.columns import case_sensitive
from dbt_zorder.spark.sql import quote_name
from dbt_zorder.stats.table_state import state_of
from dbt_zorder.tables.batch import Batch, describe_existing
from dbt_zorder.tables.conversion import fields_by_name, same_type
from dbt_zorder.tables.lakehouse.build import build
from dbt_zorder.tables.lakehouse.format import Format
from dbt_zorder.tables.lakehouse.rewrite import own_table
from dbt_zorder.tables.lakehouse.write_table import DropTable
from dbt_zorder.tables.schema_change import conform, keeps, target_schema


def merge_source(
    spark: SparkSession, form: Format, df: DataFrame, request: BuildRequest, batch: Batch, drop: DropTable
) -> DataFrame:
    """Return the rows of a MERGE, and first change the table's structs, arrays and maps where the query's differ.

    dbt-spark adds and drops whole columns with statements, but has no statement for the fields of structs. Where those
    change, a table of its own rows replaces the table in one commit.

    Args:
        spark: the session.
        form: the format of the table.
        df: the query.
        request: the settings of the model.
        batch: the batch settings with ``on_schema_change``.
        drop: a function that drops a Parquet table of ours, which a new table replaces.

    Raises:
        SchemaChangeError: ``on_schema_change`` does not allow the query's fields.
        ZorderError: the table has another format.
        BuildError: another run changed the table at the same time.
    """
    kept = form.convert_types(df, request)
    table = spark.table(request.table.sql)
    sensitive = case_sensitive(spark)
    theirs, ours = fields_by_name(kept.schema, sensitive), fields_by_name(table.schema, sensitive)
    changed = [key for key, one in ours.items() if key in theirs and _is_other(one, theirs[key])]
    if not changed:
        return df
    own_table(spark, request)
    query, existing = (StructType([columns[key] for key in changed]) for columns in (theirs, ours))
    after = target_schema(query, existing, batch.on_schema_change, sensitive=sensitive)
    types = dict(zip(changed, after.fields, strict=True))
    whole = StructType([types.get(key, one) for key, one in ours.items()])
    if not keeps(table.schema, whole):
        info, version = describe_existing(spark, request.table), state_of(spark, form.name, request.table).version
        rows = conform(table, whole)
        parts = [quote_name(name) for name in info.partition_columns]
        by_table = replace(request, spec=replace(request.spec, partition_by=parts))
        kept_properties = form.properties_to_keep(spark, info, rows, by_table)
        build(spark, form, rows, by_table, drop, before=version, kept=kept_properties)
    columns = (
        StructField(one.name, types[key].dataType if key in types else one.dataType) for key, one in theirs.items()
    )
    return conform(kept, StructType(list(columns)))


def _is_other(ours: StructField, theirs: StructField) -> bool:
    is_nested = any(isinstance(one.dataType, (StructType, ArrayType, MapType)) for one in (ours, theirs))
    return is_nested and not same_type(ours.dataType, theirs.dataType)
