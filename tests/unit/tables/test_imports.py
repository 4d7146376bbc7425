"""Which modules of tables may import which: formats know what they share, and never each other."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[3] / "dbt_zorder"
FORMATS = {"tables.parquet", "tables.lakehouse", "tables.delta", "tables.iceberg"}
FORBIDDEN = {
    "tables.parquet": FORMATS - {"tables.parquet"},
    "tables.delta": {"tables.parquet", "tables.iceberg"},
    "tables.iceberg": {"tables.parquet", "tables.delta"},
    "tables.lakehouse": FORMATS - {"tables.lakehouse"},
    "tables": {"adapter", "pruning", "cluster"},
    "stats": {"tables", "engine", "pruning", "adapter"},
    "engine": {"tables", "pruning", "adapter"},
    "request": {"tables"},
    "option_parsers": {"tables"},
}
KNOW_ALL = {"tables.registry", "tables.save"}
"""Which format a table is of, and the call of users in PySpark."""


def imports() -> Iterator[tuple[str, str]]:
    for path in PACKAGE.rglob("*.py"):
        name = ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("dbt_zorder."):
                for one in node.names:
                    yield name, f"{node.module}.{one.name}".removeprefix("dbt_zorder.")


def is_in(name: str, folder: str) -> bool:
    return f"{name}.".startswith(f"{folder}.")


@pytest.mark.parametrize("folder", FORBIDDEN)
def test_no_folder_imports_what_is_built_upon_it(folder: str) -> None:
    arrows = [arrow for arrow in imports() if is_in(arrow[0], folder)]
    assert arrows
    assert [arrow for arrow in arrows if any(is_in(arrow[1], other) for other in FORBIDDEN[folder])] == []


def test_what_formats_share_knows_none_of_them() -> None:
    shared = {name for name, _ in imports() if is_in(name, "tables") and name.count(".") == 1} - KNOW_ALL
    assert "tables.build" in shared
    found = [(name, to) for name, to in imports() if name in shared and any(is_in(to, one) for one in FORMATS)]
    assert found == []
