"""What Spark itself says that a query read, to measure pruning by something other than our own stats.

For demonstrations, tests and benchmarks: it looks into the executed plan through the JVM, so it needs a session in this
process and not Spark Connect.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

_INNER_PLAN = {"AdaptiveSparkPlan": "executedPlan", "ResultQueryStage": "plan", "ShuffleQueryStage": "plan"}


@dataclass(frozen=True)
class ScanMetrics:
    """Sums over all file scans of a query: ``number of files read`` and ``size of files read``, in bytes."""

    files: int
    size: int


def scan_metrics(df: DataFrame) -> ScanMetrics:
    """Return the scan metrics of a DataFrame that was collected; a scan whose stage was skipped counts as none."""
    plan: Any = df._jdf
    return _sum(plan.queryExecution().executedPlan())


def _sum(node: Any) -> ScanMetrics:
    inner = _INNER_PLAN.get(node.nodeName())
    if inner is not None:
        return _sum(getattr(node, inner)())
    files = size = 0
    if node.nodeName().startswith("Scan parquet"):
        metrics = node.metrics()
        files += int(metrics.apply("numFiles").value())
        size += int(metrics.apply("filesSize").value())
    children = node.children()
    for position in range(children.size()):
        below = _sum(children.apply(position))
        files, size = files + below.files, size + below.size
    return ScanMetrics(files, size)
