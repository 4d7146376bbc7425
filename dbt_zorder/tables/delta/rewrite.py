"""Overwrite a Delta table by its own rows, clustered by Spark."""

from __future__ import annotations

import uuid

from pyspark.sql import DataFrame

from dbt_zorder.errors import LostRowsError
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableInfo
from dbt_zorder.stats.delta.log import delta_state
from dbt_zorder.tables.delta.history import commit_of
from dbt_zorder.tables.lakehouse.format import Format
from dbt_zorder.tables.lakehouse.lost_commits import interrupted
from dbt_zorder.tables.lakehouse.spark_writer import options


def overwrite(form: Format, clustered: DataFrame, request: BuildRequest, info: TableInfo, before: str) -> None:
    """Overwrite a Delta table by its own rows, and restore it if rows were added since they were read.

    Delta's overwrite removes the table's content at the start of the write. A commit after the read of ``before`` and
    before that moment would be lost. The log names the version on which the overwrite is based. If it is another one,
    restore the version before the overwrite. If another run has committed on top of it, raise: a person must decide.

    Raises:
        BuildError: another commit came in between; the table has all rows.
        LostRowsError: rows were lost, and a later commit prevents the restore.
    """
    spark = clustered.sparkSession
    if delta_state(spark, request.table).version != before:
        raise interrupted(request.table)
    token = uuid.uuid4().hex
    made = clustered.write.format("delta").mode("overwrite").option("dataChange", "false")
    made.options(**options(form, request, whole=True, token=token)).save(info.location)
    ours, base, latest = commit_of(spark, request.table, token)
    if base == int(before):
        return
    if latest == ours:
        spark.sql(f"RESTORE TABLE {request.table.sql} TO VERSION AS OF {ours - 1}").collect()
        raise interrupted(request.table)
    msg = (
        f"{request.table}: version {ours} laid the table out anew without the rows of versions {int(before) + 1} to "
        f"{ours - 1}, which came in just then, and version {latest} is written upon it. They are in VERSION AS OF "
        f"{ours - 1}: add them again from there."
    )
    raise LostRowsError(msg)
