"""The suites' own SQL, which is written for Postgres, as Spark says it.

In the files of a suite's project only names of types are changed. What a test does behind dbt's back is changed
further: plain Parquet has neither UPDATE nor DELETE, so a table is read, and written again as those would have left it.
Delta Lake has both.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import sqlglot
from dbt.tests.fixtures import project
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from sqlglot import exp

from dbt_zorder.adapter.impl import ZorderAdapter
from dbt_zorder.spark.catalog import TableName, describe
from dbt_zorder.spark.sql import quote_name
from dbt_zorder.stats.table_state import FORMATS
from dbt_zorder.tables.parquet.build import build
from dbt_zorder.tables.parquet.rewrite import request_from_marker
from dbt_zorder.tables.version import version_of
from tests.support import settings

_TYPES = [
    (r"\{\{\s*target\.database\s*\}\}\.|`None`\.|\bNone\.(?=\w)", ""),  # there is no database above a schema
    (r"\btimestamp\s+without\s+time\s+zone\b", "timestamp"),
    (r"\b(character varying|varchar)\s*\(\s*\d+\s*\)|\bvarchar\b|(?<![\w.`'])text\b(?![\w'])", "string"),
    (r"\bdouble precision\b", "double"),
]
_STATEMENTS = [
    (r"--[^\n]*", ""),
    (r'"(\w+)"', r"`\1`"),
    (r"\b(big)?serial(\s+primary\s+key)?\b", "int"),
    (r"\bdefault\s+null\b", ""),
    (r"(\bdrop\s+(?:table|view)\b[^;]*?)\s+cascade\b", r"\1"),
]

_run_sql = ZorderAdapter.run_sql_for_tests
_write_files = project.write_project_files


def write_project_files(project_root: Any, folder: str, files: Mapping[str, Any]) -> None:
    """In place of dbt's own: the files of a suite's project, but its seeds, with Spark's names of types."""
    _write_files(project_root, folder, files if folder == "seeds" else _with_types(files))


def run_sql_for_tests(adapter: ZorderAdapter, sql: str, fetch: str | None, conn: Any) -> Any:
    """In place of ``ZorderAdapter.run_sql_for_tests``: each statement as Spark says it."""
    result = None
    for statement in _replaced(_replaced(sql, _TYPES), _STATEMENTS).split(";"):  # no text of the suites holds one
        if re.match(r"\s*(update|delete)\b", statement, re.IGNORECASE):
            _change_rows(adapter.session, statement)
        elif statement.strip():
            # texts become dates and numbers, as they do in Postgres
            with settings(adapter.session, {"spark.sql.storeAssignmentPolicy": "LEGACY"}):
                result = _run_sql(adapter, statement, fetch, conn)
    return result


def update_column_sql(
    adapter: ZorderAdapter, dst_name: str, dst_column: str, clause: str, where_clause: str | None = None
) -> str:
    """In place of ``ZorderAdapter.update_column_sql``, of dbt's own tests: change the rows here and now."""
    where = f" where {where_clause}" if where_clause else ""
    _change_rows(adapter.session, f"update {dst_name} set {dst_column} = {clause}{where}")
    return "select 1"


def _with_types(files: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: _replaced(text, _TYPES) if isinstance(text, str) else _with_types(text) for name, text in files.items()
    }


def _replaced(sql: str, words: Sequence[tuple[str, str]]) -> str:
    for pattern, word in words:
        sql = re.sub(pattern, word, sql, flags=re.IGNORECASE)
    return sql


def _change_rows(spark: SparkSession, statement: str) -> None:
    parsed = sqlglot.parse_one(statement, read="spark")
    target = parsed.find(exp.Table)
    assert isinstance(parsed, exp.Update | exp.Delete)
    assert target is not None
    table = TableName(target.db, target.name)
    info = describe(spark, table)
    assert info is not None
    if info.provider in FORMATS:
        spark.sql(parsed.sql("spark"))
        return
    versioned = bool(version_of(info.location))
    where = parsed.args.get("where")
    changed = where.this.sql("spark") if where else "true"
    rows = spark.table(table.sql)
    if isinstance(parsed, exp.Delete):
        _rewrite(spark, table, rows.where(f"NOT coalesce({changed}, false)"), versioned)
        return
    values = {one.this.name.lower(): one.expression.sql("spark") for one in parsed.expressions}
    columns = [
        f.expr(f"if({changed}, {values.get(name.lower(), quote_name(name))}, {quote_name(name)})").alias(name)
        for name in rows.columns
    ]
    _rewrite(spark, table, rows.select(*columns), versioned)


def _rewrite(spark: SparkSession, table: TableName, rows: DataFrame, versioned: bool) -> None:
    schema = spark.table(table.sql).schema
    local = spark.createDataFrame(rows.collect(), schema)
    if versioned:
        build(spark, local, request_from_marker(spark, table))
    else:
        local.write.insertInto(table.sql, overwrite=True)
