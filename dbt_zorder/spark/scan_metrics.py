"""Measure what a query read by Spark's own metrics, independently of our own stats.

It is for demonstrations, tests and benchmarks. It inspects the executed plan through the JVM, so it needs a session in
this process. Spark Connect does not work.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

_INNER_PLAN = {"AdaptiveSparkPlan": "executedPlan", "ResultQueryStage": "plan", "ShuffleQueryStage": "plan"}


_FILES_AND_BYTES = {"Scan": ("numFiles", "filesSize"), "BatchScan": ("resultDataFiles", "totalDataFileSize")}
"""Metrics by operator: Spark's file scans, which Delta uses as well, and Iceberg's scans."""


@dataclass(frozen=True)
class ScanMetrics:
    """Sums over all file scans of a query: ``number of files read`` and ``size of files read``, in bytes."""

    files: int
    size: int


def scan_metrics(df: DataFrame) -> ScanMetrics:
    """Return the scan metrics of a collected DataFrame; a scan whose stage was skipped counts as 0 files.

    ``show()`` and ``count()`` execute plans of their own, so the result after them is 0 files.

    Examples:
        >>> df = scan(spark, "shop.orders", "order_id = 42")
        >>> rows = df.collect()
        >>> scan_metrics(df).files
        2
    """
    plan: Any = df._jdf
    return _sum(plan.queryExecution().executedPlan())


def _sum(node: Any) -> ScanMetrics:
    inner = _INNER_PLAN.get(node.nodeName())
    if inner is not None:
        return _sum(getattr(node, inner)())
    files = size = 0
    names = _FILES_AND_BYTES.get(node.nodeName().split(" ")[0])
    if names is not None and node.metrics().contains(names[0]):
        files, size = (int(node.metrics().apply(name).value()) for name in names)
    children = node.children()
    for position in range(children.size()):
        below = _sum(children.apply(position))
        files, size = files + below.files, size + below.size
    return ScanMetrics(files, size)
