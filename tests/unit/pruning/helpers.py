"""A small table with statistics, and the number of files that a query opened."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession

COLUMNS = ["a", "b", "s", "d", "ts", "st.f", "st.g", "x", "n", "flag", "dec"]

DATA = """
    SELECT /*+ repartition_by_range(8, b) */
      cast(id AS int) a, id b, concat('k', lpad(id, 4, '0')) s, date_add(DATE'2024-01-01', cast(id / 10 AS int)) d,
      timestamp_seconds(1700000000 + id * 3600) ts, named_struct('f', id, 'g', if(id % 3 = 0, null, id)) st,
      id * 1.5D x, if(id < 100, null, id) n, id < 500 flag, cast(id / 7 AS decimal(10, 3)) dec
    FROM range(1000)
"""


def location(spark: SparkSession, table: str) -> str:
    return next(str(r[1]) for r in spark.sql(f"DESCRIBE TABLE EXTENDED {table}").collect() if r[0] == "Location")


def files_read(df: DataFrame) -> int:
    """Run ``df`` and return what its scans report as ``numFiles``."""
    df.collect()
    total = 0
    plans: list[Any] = [df._jdf.queryExecution().executedPlan()]
    while plans:
        plan = plans.pop()
        name = plan.getClass().getSimpleName()
        if name == "AdaptiveSparkPlanExec":
            plans.append(plan.executedPlan())
        elif name.endswith("QueryStageExec"):
            plans.append(plan.plan())
        elif "FileSourceScan" in name:
            total += plan.metrics().apply("numFiles").value()
        else:
            children = plan.children()
            plans.extend(children.apply(i) for i in range(children.size()))
    return total
