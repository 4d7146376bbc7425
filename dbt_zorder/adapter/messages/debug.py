"""Check for ``dbt debug``: write a small z-ordered table, and verify that a pruned read skips files."""

from __future__ import annotations

import secrets
import subprocess
import time
from collections.abc import Callable

import pyspark
from pyspark.sql import SparkSession

from dbt_zorder import pruning
from dbt_zorder.adapter.session.java import find_java, parse_java_version
from dbt_zorder.errors import ZorderError
from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableName, schema_location
from dbt_zorder.spark.sql import quote_name
from dbt_zorder.tables.parquet.build import build
from dbt_zorder.tables.parquet.operations.drop import drop_table

FILES = 4
ROWS = 4_000


def check_session(spark: SparkSession, schema: str, print_line: Callable[[str], None]) -> None:
    """Report the session's properties, then build, read and drop a small table in it.

    Args:
        spark: the session.
        schema: schema of the profile. Created for the check, and dropped after it, if it does not exist.
        print_line: a function that prints one line.

    Raises:
        ZorderError: the pruned and the full read differ, or no file was pruned.
        Exception: Spark cannot write to the schema.
    """
    print_line(f"java: {_java()}")
    print_line(
        f"spark: {spark.version} at {spark.conf.get('spark.master', 'a remote master')}, pyspark {pyspark.__version__}"
    )
    print_line(f"warehouse: {spark.conf.get('spark.sql.warehouse.dir', 'unknown')}")
    is_new = not spark.catalog.databaseExists(quote_name(schema))
    spark.sql(f"CREATE SCHEMA IF NOT EXISTS {quote_name(schema)}")
    try:
        print_line(f"schema {schema}: {schema_location(spark, schema)}{' (made for this check)' if is_new else ''}")
        print_line(f"write and prune: {_try_table(spark, TableName(schema, f'zorder_debug_{secrets.token_hex(4)}'))}")
    finally:
        if is_new:
            spark.sql(f"DROP SCHEMA IF EXISTS {quote_name(schema)}")


def _try_table(spark: SparkSession, table: TableName) -> str:
    started = time.monotonic()
    rows = spark.range(ROWS).selectExpr("id", "pmod(hash(id), 1000) AS place")
    try:
        report = build(spark, rows, BuildRequest(table, LayoutSpec(by=("id", "place"), files=FILES)))
        predicate = f"id = {ROWS // 2}"
        explanation = pruning.explain(spark, table.sql, predicate)
        pruned = pruning.scan(spark, table.sql, predicate).count()
        full = spark.table(table.sql).where(predicate).count()
    finally:
        drop_table(spark, table)
    if pruned != full or explanation.files_read is None or explanation.files_read >= report.summary.files:
        msg = (
            f"A table of {report.summary.files} files was written, but a read of {predicate} gave {pruned} rows from "
            f"{explanation.files_read} files with pruning and {full} without. {explanation.reason}"
        )
        raise ZorderError(msg)
    seconds = time.monotonic() - started
    return f"{report.summary.files} files written, {explanation.files_read} read for one id, in {seconds:.1f} s"


def _java() -> str:
    java = find_java()
    if java is None:
        return "none in this process, so Spark runs elsewhere"
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return f"{java}, which did not answer"
    return f"{parse_java_version(done.stderr + done.stdout) or 'of unknown version'} ({java})"
