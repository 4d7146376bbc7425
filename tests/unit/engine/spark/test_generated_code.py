from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from dbt_zorder.cluster import cluster
from dbt_zorder.curve.grid import BOUNDARIES
from tests.support import settings

COMPILED_BELOW = 8000
"""Bytes of a Java method that HotSpot compiles at most; a longer one runs interpreted."""
GENERATOR = "org.apache.spark.sql.catalyst.expressions.codegen.CodeGenerator"


class Methods:
    """The methods that Spark makes of a query."""

    def __init__(self, spark: SparkSession) -> None:
        self._jvm: Any = spark._jvm

    def longest_of_stages(self, df: DataFrame) -> int:
        """Return the bytes of the longest one of what Spark makes of whole stages, 0 if it makes none."""
        query: Any = df._jdf
        found = query.queryExecution().debug().codegenToSeq()
        return max((int(found.apply(at)._3().maxMethodCodeSize()) for at in range(found.size())), default=0)

    @contextmanager
    def too_long(self) -> Iterator[list[str]]:
        """Gather what Spark logs of methods, of stages and of projections, that are too long to be compiled."""
        log4j = self._jvm.org.apache.logging.log4j
        text = self._jvm.java.io.StringWriter()
        layout = log4j.core.layout.PatternLayout.createDefaultLayout()
        appender = log4j.core.appender.WriterAppender.createAppender(layout, None, text, "methods", False, False)
        logger = log4j.LogManager.getContext(False).getLogger(GENERATOR)
        level, additive = logger.getLevel(), logger.isAdditive()
        appender.start()
        logger.addAppender(appender)
        logger.setAdditive(False)
        logger.setLevel(log4j.Level.INFO)
        lines: list[str] = []
        try:
            yield lines
        finally:
            logger.setLevel(level)
            logger.setAdditive(additive)
            logger.removeAppender(appender)
            lines += [line for line in str(text).splitlines() if "too long to be JIT compiled" in line]


@pytest.fixture
def methods(spark: SparkSession) -> Methods:
    return Methods(spark)


@pytest.fixture(scope="module")
def rows(spark: SparkSession, database: str) -> DataFrame:
    """Return rows of many columns, half of them numbers and half texts."""
    made = [f"pmod(hash(id, {n}), 1000) as c{n}" if n % 2 == 0 else f"hex(hash(id, {n})) as c{n}" for n in range(150)]
    spark.range(0, 3000, 1, 2).selectExpr(*made).write.saveAsTable(f"{database}.wide")
    return spark.table(f"{database}.wide")


@pytest.mark.parametrize("way", ["descent", "decisions", "partitions", "bits", "hilbert", "hilbert_bits"])
@pytest.mark.parametrize(("columns", "keys"), [(9, 8), (60, 2), (60, 8), (93, 8), (98, 8)])
def test_no_method_is_too_long_to_be_compiled(
    spark: SparkSession,
    methods: Methods,
    rows: DataFrame,
    monkeypatch: pytest.MonkeyPatch,
    columns: int,
    keys: int,
    way: str,
) -> None:
    monkeypatch.setattr(
        "dbt_zorder.engine.spark.spark_plan.boundaries_allowed", lambda *_: BOUNDARIES[-1] if way == "decisions" else -1
    )
    # a column more, so that no other test has compiled these projections
    df = rows.select(*(f"c{n}" for n in range(columns))).withColumn(way, f.lit(1))
    curve, encoding = ("hilbert" if "hilbert" in way else "zorder"), ("bits" if "bits" in way else "rank")
    parts = "c8" if way == "partitions" else ()
    # the plan of a stage is read before the query is run
    with settings(spark, {"spark.sql.adaptive.enabled": "false"}), methods.too_long() as found:
        by = [f"c{n}" for n in range(keys)]
        clustered = cluster(df, by, files=16, partition_by=parts, curve=curve, encoding=encoding)
        longest = methods.longest_of_stages(clustered)
        clustered.write.format("noop").mode("overwrite").save()
    assert found == []
    assert longest <= COMPILED_BELOW
    assert longest > 0


def test_a_method_that_is_too_long_would_be_seen(spark: SparkSession, methods: Methods) -> None:
    terms = [f"pmod(id * {n + 3} + {n}, {n + 7})" for n in range(256)]
    while len(terms) > 1:  # pair by pair, as Spark's parser goes down but so deep
        terms = [f"({left} + {right})" for left, right in zip(terms[::2], terms[1::2], strict=True)]
    df = spark.range(100).select(f.expr(terms[0]).alias("v"))
    with settings(spark, {"spark.sql.adaptive.enabled": "false"}), methods.too_long() as found:
        longest = methods.longest_of_stages(df)
    assert longest > COMPILED_BELOW
    assert found
