"""Functions for users of plain PySpark: build, cluster and read z-ordered tables without dbt.

    from dbt_zorder.api import open_session, save_table, scan

    spark = open_session({}, ".spark_zorder")
    save_table(spark.read.parquet("orders.parquet"), "default.orders", ["customer_id", "event_ts"])
    scan(spark, "default.orders", "customer_id = 42").show()

Import from here alone: all other modules may change from one release to the next.
"""

from __future__ import annotations

from dbt_zorder.adapter.session.open import open_session
from dbt_zorder.cluster import cluster
from dbt_zorder.errors import BuildError, ColumnError, ConfigError, PredicateError, ZorderError
from dbt_zorder.pruning import (
    Explanation,
    Pruned,
    explain,
    make_predicates,
    prune_statement,
    query,
    scan,
    scan_sql,
    sound,
)
from dbt_zorder.spark.scan_metrics import scan_metrics
from dbt_zorder.stats import collect as collect_stats
from dbt_zorder.tables.diagnose import health
from dbt_zorder.tables.health import ColumnHealth, TableHealth
from dbt_zorder.tables.report import Outcome
from dbt_zorder.tables.save import save_table

__all__ = [
    "BuildError",
    "ColumnError",
    "ColumnHealth",
    "ConfigError",
    "Explanation",
    "Outcome",
    "PredicateError",
    "Pruned",
    "TableHealth",
    "ZorderError",
    "cluster",
    "collect_stats",
    "explain",
    "health",
    "make_predicates",
    "open_session",
    "prune_statement",
    "query",
    "save_table",
    "scan",
    "scan_metrics",
    "scan_sql",
    "sound",
]
