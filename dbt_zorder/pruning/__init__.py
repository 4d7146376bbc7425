"""Prune files by a predicate: skip every file that cannot contain a matching row.

Every doubt leads to a full read, so no row is ever lost.
"""

from __future__ import annotations

from dbt_zorder.pruning.explain import Explanation, explain
from dbt_zorder.pruning.plain_sql.explanation import StatementExplanation
from dbt_zorder.pruning.plain_sql.statement import Pruned, TableRead, prune_statement, query
from dbt_zorder.pruning.scan import scan, scan_sql
from dbt_zorder.pruning.selfcheck import Mismatch, make_predicates, sound

__all__ = [
    "Explanation",
    "Mismatch",
    "Pruned",
    "StatementExplanation",
    "TableRead",
    "explain",
    "make_predicates",
    "prune_statement",
    "query",
    "scan",
    "scan_sql",
    "sound",
]
