"""Imports run one way through the house: docs/development/architecture.md draws it."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "dbt_zorder"

FLOORS = [
    ("spark", "curve", "errors", "humanize", "progress"),
    ("layout",),
    ("stats",),
    ("engine.rows",),
    ("engine.parquet",),
    ("engine.row_bytes", "request", "option_parsers"),
    ("engine.local", "engine.spark"),
    ("engine", "pruning"),
    ("cluster", "advice"),
    ("tables",),
    ("tables.parquet", "tables.lakehouse"),
    ("tables.delta", "tables.iceberg"),
    ("tables.registry", "tables.save"),
    ("tables.diagnose",),
    ("tables.compact",),
    ("adapter",),
    ("api",),
]
"""Rooms from the ground up; a room imports those on floors below, and none beside it. The nearest name counts."""

BESIDE = {
    ("spark", "errors"), ("spark", "humanize"), ("curve", "errors"), ("spark", "progress"),
    ("option_parsers", "request"), ("tables.save", "tables.registry"),
}  # fmt: skip
"""What is imported on one floor all the same."""

NEVER = {("pruning", "engine"), ("pruning", "engine.local"), ("pruning", "engine.spark")}

CURVE_MAY_IMPORT = sys.stdlib_module_names | {"numpy", "dbt_zorder"}


def modules() -> dict[str, Path]:
    """Return the package's modules, by dotted name without the package's own."""
    paths = {path.relative_to(PACKAGE): path for path in PACKAGE.rglob("*.py") if "adapters" not in path.parts[:-2]}
    names = {
        ".".join(short.with_suffix("").parts).removesuffix("__init__").rstrip("."): p for short, p in paths.items()
    }
    return {name: path for name, path in names.items() if name and not name.startswith("adapters")}


MODULES = modules()


def imported(path: Path) -> set[str]:
    """Return what a file imports, also inside functions."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            whole = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name for name in whole if name.removeprefix("dbt_zorder.") in MODULES} or {node.module}
    return found


def ours(path: Path) -> set[str]:
    return {name.removeprefix("dbt_zorder.") for name in imported(path) if name.startswith("dbt_zorder.")}


def room_of(module: str) -> tuple[str, int]:
    """Return the room of a module, by the longest name, and its floor."""
    found = [
        (room, floor) for floor, rooms in enumerate(FLOORS) for room in rooms if f"{module}.".startswith(f"{room}.")
    ]
    return max(found, key=lambda one: len(one[0]))


@pytest.mark.parametrize("module", sorted(MODULES))
def test_a_module_imports_only_from_floors_below_its_own(module: str) -> None:
    room, floor = room_of(module)
    up = []
    for other in sorted(ours(MODULES[module])):
        there, below = room_of(other)
        allowed = there == room or below < floor or (room, there) in BESIDE
        if not allowed or (room, there) in NEVER:
            up.append(f"{other} ({there})")
    assert not up, f"{module} ({room}) imports {', '.join(up)}"


def test_no_modules_import_each_other_in_a_circle() -> None:
    todo = {name: ours(path) & MODULES.keys() - {name} for name, path in MODULES.items()}
    while free := {name for name, needs in todo.items() if not needs & todo.keys()}:
        for name in free:
            del todo[name]
    assert not todo, f"these import each other: {sorted(todo)}"


@pytest.mark.parametrize("module", [name for name in sorted(MODULES) if name.startswith("curve.")])
def test_curves_are_mathematics_alone(module: str) -> None:
    foreign = {name.split(".")[0] for name in imported(MODULES[module])} - CURVE_MAY_IMPORT
    assert not foreign
