"""Plans the layout of a query for the engine that will place its rows."""

from __future__ import annotations

from pyspark.sql import DataFrame

from dbt_zorder.engine.spark.spark_plan import SparkPlan, for_spark
from dbt_zorder.layout import plan as layouts
from dbt_zorder.layout.known_keys import DrawnKeys, FetchedKeys, KnownKeys
from dbt_zorder.layout.layout import Layout
from dbt_zorder.layout.plan import Plan
from dbt_zorder.layout.spec import LayoutSpec


def make_plan(df: DataFrame, spec: LayoutSpec, known: KnownKeys = None) -> Plan:
    """Count and sample a query, and plan its files; arguments and errors are those of ``layout.plan.make_plan``.

    If this process has the keys, it places the rows by the tree itself. Spark places all other rows, which needs a
    ``SparkPlan``.
    """
    plan = layouts.make_plan(df, spec, known)
    return plan if isinstance(known, (FetchedKeys, DrawnKeys)) else for_spark(plan)


def plan_layout(df: DataFrame, spec: LayoutSpec, known: KnownKeys = None) -> Layout:
    """Count and sample a query, and return the layout of its output; see ``make_plan``."""
    return make_plan(df, spec, known).layout


def resize_plan(plan: Plan, row_bytes: float) -> Plan:
    """Return a plan over the same sample and for the same engine, with another number of bytes per row.

    Raises:
        ConfigError: the number of files exceeds the limit.
    """
    found = layouts.resize_plan(plan, row_bytes)
    return for_spark(found) if isinstance(plan, SparkPlan) else found
