"""Whether a query's result is worth keeping between the sample and the write, told from its plan."""

from __future__ import annotations

import contextlib
import logging
import re
import uuid
from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

_LOG = logging.getLogger("dbt_zorder")

_EXPENSIVE = {
    "join": re.compile(r"\b\w*Join\b|\bCartesianProduct\b"),
    "aggregate": re.compile(r"\b\w*Aggregate\b"),
    "window": re.compile(r"\bWindow\w*\b"),
    "shuffle": re.compile(r"\b\w*Exchange\b"),
    "Python function": re.compile(r"\b(Arrow|Batch)EvalPython\b|\bMapIn\w+\b|\bFlatMap\w+In\w+\b"),
    "Scala or Java function": re.compile(r"\bMapPartitions\b|\bMapElements\b|\bGenerate\b"),
    "source other than Parquet or ORC": re.compile(
        r"\b(File|Batch)Scan (?!parquet\b|orc\b)(?!.*(\bIceberg|\(branch=))|\bScan (?!OneRowRelation\b)"
    ),
    "LIMIT": re.compile(r"\b\w*Limit\b|\bTakeOrdered\w*"),  # other rows each time, unless all of them are ordered
}
_FUNCTION = re.compile(r"\bUDF\(|\bHive\w*UDF#")
"""Of Scala, Java or Hive without a name in SQL: what has one looks like a function of Spark's own."""
_CHANCE = re.compile(r"\b(rand|randn|random|randstr|uniform|uuid|shuffle)\(")


def reason_to_stage(df: DataFrame) -> str | None:
    """Return what makes a query expensive or unsafe to run twice, None if it is a plain scan with filters."""
    plan = _physical_plan(df)
    if _CHANCE.search(plan):
        return "function of chance"  # what is counted and sampled would not be what is written
    if _FUNCTION.search(plan):
        return "Scala or Java function"
    # names of columns and paths stand in brackets behind each operator; only the operators count
    plan = re.sub(r"\[[^\[\]]*\]", "", plan)
    return next((what for what, pattern in _EXPENSIVE.items() if pattern.search(plan)), None)


@contextlib.contextmanager
def staged(df: DataFrame) -> Iterator[DataFrame]:
    """Give ``df`` back, kept in memory and on disk while the block runs if it is expensive to run twice."""
    reason = reason_to_stage(df)
    if reason is None:
        _LOG.debug("the query is a plain scan: it runs for the count, for the sample and for the write")
        yield df
        return
    _LOG.debug("the query holds a %s: its result is kept between the sample and the write", reason)
    kept = _apart(df).persist()
    try:
        yield kept
    finally:
        kept.unpersist()


def _apart(df: DataFrame) -> DataFrame:
    """Return the same rows by a plan that nobody else has.

    Spark keeps results by their plan: letting go of ours, or dropping a view of it, would let go of what the user or
    another thread keeps by the same one.
    """
    return df.where(f.lit(uuid.uuid4().hex).isNotNull())


def _physical_plan(df: DataFrame) -> str:
    """Return the text of the physical plan; PySpark's API for it prints to the process's standard output.

    Over Spark Connect, where the JVM cannot be asked, it is got by SQL.
    """
    spark = df.sparkSession
    jvm: Any = getattr(spark, "_jvm", None)
    if jvm is not None:
        return str(jvm.PythonSQLUtils.explainString(df._jdf.queryExecution(), "simple"))
    view = f"zorder_plan_{uuid.uuid4().hex}"
    _apart(df).createTempView(view)
    try:
        return str(spark.sql(f"EXPLAIN SELECT * FROM {view}").collect()[0][0])
    finally:
        spark.catalog.dropTempView(view)
