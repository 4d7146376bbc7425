"""From a query to clustered files: sample, boundaries, a tree of files, rows in curve order. Knows Spark, not dbt."""

from __future__ import annotations

from dbt_zorder.layout.cluster import cluster

__all__ = ["cluster"]
