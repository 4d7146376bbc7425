"""Decides from a query's plan whether to keep its result between the sample and the write."""

from __future__ import annotations

import contextlib
import logging
import re
import threading
import uuid
from collections.abc import Iterator
from functools import cached_property
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from dbt_zorder.engine.local.spool.spool import spool_rows
from dbt_zorder.engine.local.spool.spoolable import can_spool, survives_parquet
from dbt_zorder.spark.conf import settings
from dbt_zorder.spark.jvm import jvm_of

_LOG = logging.getLogger("dbt_zorder")


def _operator(names: str) -> re.Pattern[str]:
    """Return a pattern that matches a plan line by its leading operator, after the branches that lead to it."""
    return re.compile(rf"^[\s:+-]*(\*(\(\d+\))? ?)?({names})", re.MULTILINE)


_EXPENSIVE = {
    "join": _operator(r"\w*Join\b|CartesianProduct\b"),
    "aggregate": _operator(r"\w*Aggregate\b"),
    "window": _operator(r"Window\w*\b"),
    "shuffle": _operator(r"\w*Exchange\b"),
    "Python function": _operator(r"(Arrow|Batch)EvalPython\w*\b|MapIn\w+\b|FlatMap\w+In\w+\b"),
    "Scala or Java function": _operator(r"MapPartitions\b|MapElements\b|Generate\b"),
    "script": _operator(r"\w*ScriptTransformation\b"),
    "source other than Parquet or ORC": _operator(
        r"(File|Batch)Scan (?!parquet\b|orc\b)(?!.*(\bIceberg|\(branch=))|Scan (?!OneRowRelation\b)"
    ),
    "LIMIT": _operator(r"\w*Limit\b|TakeOrdered\w*"),  # other rows each time, unless the order is total
}
_WRITTEN = {what: _EXPENSIVE[what] for what in ("join", "aggregate", "window", "LIMIT")}
"""These operators also appear in the analysed query, where they are found without planning."""
_FUNCTION = re.compile(r"\bUDF\(|\bHive\w*UDF#")
"""Functions of Scala, Java or Hive without a name in SQL. Named ones look like Spark's own functions."""
_NONDETERMINISTIC = re.compile(r"\b(rand|randn|random|randstr|uniform|uuid|shuffle|reflect|try_reflect|java_method)\(")
_UNLIMITED_FIELDS = {"spark.sql.debug.maxToStringFields": "1000000"}
"""Maximum number of columns and expressions that a plan names per operator; the default is 25."""
_EXPLAIN_LOCK = threading.Lock()
"""Serializes threads that share a session: one would restore the setting that the other has changed."""


class Staged:
    """A query whose result may be kept for the duration of a block.

    Attributes:
        query: query as given, which runs each time.
        is_kept: whether the result is kept after the first run.
    """

    def __init__(self, query: DataFrame, until_done: contextlib.ExitStack, *, is_kept: bool) -> None:
        self.query = query
        self.is_kept = is_kept
        self._until_done = until_done

    @cached_property
    def rows(self) -> DataFrame:
        """Return the query, or its kept result.

        The result is spooled to the local disk if all of Spark runs on this machine. Spark's own cache has as many
        partitions as a shuffle makes, 200 by default: 20,000 rows take 1.9 s there, and 0.4 s spooled.
        """
        if not self.is_kept:
            return self.query
        spark = self.query.sparkSession
        if can_spool(spark) and survives_parquet(self.query):
            copy = self._until_done.enter_context(spool_rows(self.query))
            if copy is not None:
                return copy.rows
        kept = _with_unique_plan(self.query).persist()
        self._until_done.callback(kept.unpersist)
        return kept

    def count_kept(self) -> int | None:
        """Run a kept query, and return its number of rows; return None if a count would run the query once more."""
        return self.rows.count() if self.is_kept else None


def reason_to_stage(df: DataFrame) -> str | None:
    """Return why a query is expensive or unsafe to run twice, None if it is a plain scan with filters."""
    return _reason_by_words(df) or _reason_by_plan(df)


def _reason_by_words(df: DataFrame) -> str | None:
    """Return a reason from the analysed query, which costs nothing.

    Planning takes 0.25 s over a Delta Lake table, and again when the result is kept. Most incremental models filter by
    the greatest existing value, which is an aggregate.
    """
    if jvm_of(df.sparkSession) is None:
        return None
    query: Any = df._jdf.queryExecution()
    text = str(query.analyzed().toString())
    return next((what for what, pattern in _WRITTEN.items() if pattern.search(text)), None)


def _reason_by_plan(df: DataFrame) -> str | None:
    plan = _physical_plan(df)
    if _NONDETERMINISTIC.search(plan):
        return "function of chance"  # the written rows would differ from the sampled ones
    if _FUNCTION.search(plan):
        return "Scala or Java function"
    return next((what for what, pattern in _EXPENSIVE.items() if pattern.search(plan)), None)


@contextlib.contextmanager
def staged(df: DataFrame) -> Iterator[Staged]:
    """Yield ``df``, which runs only once during the block if it is expensive to run twice."""
    reason = reason_to_stage(df)
    if reason is None:
        _LOG.debug(
            "the query is a plain scan: it is not kept, and may run for the count, for the sample and for the write"
        )
    else:
        _LOG.debug("the query holds a %s: its result is kept between the sample and the write", reason)
    with contextlib.ExitStack() as until_done:
        yield Staged(df, until_done, is_kept=reason is not None)


@contextlib.contextmanager
def kept(df: DataFrame) -> Iterator[DataFrame]:
    """Yield the result of a query, which runs only once during the block, whatever it costs."""
    with contextlib.ExitStack() as until_done:
        yield Staged(df, until_done, is_kept=True).rows


def _with_unique_plan(df: DataFrame) -> DataFrame:
    """Return the same rows by a plan that no other query shares.

    Spark caches results by plan. The user or another thread may cache a result by the same plan. Releasing ours, or
    dropping a view of it, would release theirs.
    """
    return df.where(f.lit(uuid.uuid4().hex).isNotNull())


def _physical_plan(df: DataFrame) -> str:
    """Return the text of the physical plan; PySpark's API for it prints to standard output.

    Over Spark Connect, which offers no access to the JVM, SQL returns the plan.
    """
    spark = df.sparkSession
    jvm = jvm_of(spark)
    if jvm is not None:
        with _EXPLAIN_LOCK, settings(spark, _UNLIMITED_FIELDS):
            return str(jvm.PythonSQLUtils.explainString(df._jdf.queryExecution(), "simple"))
    view = f"zorder_plan_{uuid.uuid4().hex}"
    _with_unique_plan(df).createTempView(view)
    try:
        with _EXPLAIN_LOCK, settings(spark, _UNLIMITED_FIELDS):
            return str(spark.sql(f"EXPLAIN SELECT * FROM {view}").collect()[0][0])
    finally:
        spark.catalog.dropTempView(view)
