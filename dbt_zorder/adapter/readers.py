"""The SQL of a project's nodes that read one table, directly or through views."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dbt.compilation import Compiler

from dbt_zorder.advice.workload import TableKey
from dbt_zorder.spark.catalog import TableName

_READERS = ("model", "test", "snapshot", "analysis")


@dataclass(frozen=True)
class Readers:
    """What a project reads from one table.

    Attributes:
        queries: SQL text by the name of the node.
        views: SQL text of the views between the table and these nodes.
        failed: nodes whose SQL could not be compiled, and why.
    """

    queries: Mapping[str, str]
    views: Mapping[TableKey, str]
    failed: tuple[str, ...]


def find_readers(manifest: Any, config: Any, table: TableName) -> Readers:
    """Compile the nodes that read a table.

    A view runs with each query on it, so it counts by itself only where no other node reads it, or an exposure does.

    Args:
        manifest: the project's manifest.
        config: the project's runtime config.
        table: the table.
    """
    compiler = Compiler(config)
    exposed = {parent for exposure in manifest.exposures.values() for parent in exposure.depends_on.nodes}
    found = dict(_downstream(manifest, table))
    queries: dict[str, str] = {}
    views: dict[TableKey, str] = {}
    failed = []
    for node in found.values():
        if node.resource_type not in _READERS or _kind(node) == "ephemeral":  # dbt writes its SQL into its readers
            continue
        if getattr(node, "language", "sql") != "sql":
            failed.append(f"{node.name}: it is Python")
            continue
        try:
            sql = compiler.compile_node(node, manifest, write=False).compiled_code or ""
        except Exception as exc:  # a query of its own that runs while dbt compiles it
            failed.append(f"{node.name}: {str(exc).strip().splitlines()[0]}")
            continue
        if _kind(node) == "view":
            views[str(node.schema).lower(), str(node.alias).lower()] = sql
            if node.unique_id not in exposed and any(_reads(other, node.unique_id) for other in found.values()):
                continue
        queries[node.name] = f"SELECT count(*) FROM ({sql})" if node.resource_type == "test" else sql
    return Readers(queries, views, tuple(failed))


def _downstream(manifest: Any, table: TableName) -> Iterator[tuple[str, Any]]:
    """Yield the nodes that read a table directly, or through views and ephemeral models, by their ids."""
    named = [*manifest.nodes.values(), *manifest.sources.values()]
    todo = [node.unique_id for node in named if _key(node) == (table.schema.lower(), table.identifier.lower())]
    seen = set(todo)
    while todo:
        parent = todo.pop()
        for node in manifest.nodes.values():
            if parent not in node.depends_on_nodes or node.unique_id in seen:
                continue
            seen.add(node.unique_id)
            yield node.unique_id, node
            if node.resource_type == "model" and _kind(node) in ("view", "ephemeral"):
                todo.append(node.unique_id)


def _reads(node: Any, parent: str) -> bool:
    return node.resource_type != "test" and parent in node.depends_on_nodes


def _kind(node: Any) -> str:
    return str(node.config.materialized) if node.resource_type == "model" else ""


def _key(node: Any) -> TableKey | None:
    """Return the schema and name of the table that a node builds or a source names; None for other nodes."""
    if node.resource_type not in ("model", "seed", "snapshot", "source"):
        return None
    return str(node.schema).lower(), str(getattr(node, "identifier", None) or node.alias).lower()
