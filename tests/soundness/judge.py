"""Many predicates at once: what the generated condition keeps, against what Spark finds in the rows."""

from __future__ import annotations

import importlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from tests.soundness.world import World
from tests.support import settings

BATCH = 100
FAST = {
    # Hundreds of predicates in one query are compiled to code that is larger than Java allows: do not try.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
}

AS_WRITTEN = {
    # Spark's optimizer turns CAST(ts AS DATE) = d into a range of ts, which is not the same where clocks are set back.
    # Pruning must be right for both readings, so both are tested.
    "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.UnwrapCastInBinaryComparison"
}


def module(name: str) -> Any:
    """Return a module of the package as it is now: the mutation run replaces them."""
    return importlib.import_module(f"dbt_zorder.pruning.{name}")


@dataclass
class Asked:
    """One predicate, with the files in which Spark finds a match."""

    text: str
    matches: np.ndarray[Any, Any]
    tree: Any = None
    types: Any = None


@dataclass
class Verdict:
    """Sums over all decisions, and what was wrong."""

    decisions: int = 0
    predicates: int = 0
    kept: int = 0
    needed: int = 0
    understood: int = 0
    unsound: list[str] = field(default_factory=list)


def ask(spark: SparkSession, world: World, predicates: Sequence[str]) -> list[Asked]:
    """Return the truth about each predicate that is valid SQL."""
    asked: list[Asked] = []
    with settings(spark, FAST):
        for start in range(0, len(predicates), BATCH):
            asked += _truth(world, list(predicates[start : start + BATCH]))
    return asked


def _truth(world: World, predicates: list[str]) -> list[Asked]:
    """Halve a batch that fails, until what is invalid stands alone."""
    if not predicates:
        return []
    counts = [f"max(coalesce({text}, false)) AS p{number}" for number, text in enumerate(predicates)]
    try:
        found = world.rows.groupBy("file_id").agg(*map(_expr, counts)).orderBy("file_id").collect()
    except PySparkException:
        if len(predicates) == 1:
            return []
        middle = len(predicates) // 2
        return _truth(world, predicates[:middle]) + _truth(world, predicates[middle:])
    table = np.array([list(row)[1:] for row in found], dtype=bool)
    return [Asked(text, table[:, number]) for number, text in enumerate(predicates)]


def understand(spark: SparkSession, world: World, asked: Sequence[Asked], *, sensitive: bool = False) -> None:
    """Give every predicate its tree, where Spark confirms it."""
    names = module("predicate.names").Names(world.rows.schema, sensitive)
    read = module("predicate.read")
    for item in asked:
        tree = module("predicate.parse").parse(item.text)
        item.tree = None if tree is None else read.read(tree, names)
    to_sql = module("predicate.tree").to_sql
    for start in range(0, len(asked), BATCH):
        _confirm(world.rows, [item for item in asked[start : start + BATCH] if item.tree is not None], to_sql)
    for start in range(0, len(asked), BATCH):
        group = [item for item in asked[start : start + BATCH] if item.tree is not None]
        if group:
            types = module("predicate.confirm").read_types(
                spark, module("predicate.tree").And(tuple(item.tree for item in group))
            )
            for item in group:
                item.types = types


def _confirm(rows: DataFrame, group: list[Asked], to_sql: Any) -> None:
    if not group:
        return
    given = rows.selectExpr(*(f"({item.text}) AS p{number}" for number, item in enumerate(group)))
    try:
        written = rows.selectExpr(*(f"{to_sql(item.tree)} AS p{number}" for number, item in enumerate(group)))
        same = given.sameSemantics(written)
    except PySparkException:
        same = False
    if same:
        return
    if len(group) == 1:
        accepted = rows.where(group[0].text)
        if not module("predicate.confirm").is_confirmed(rows, accepted, group[0].tree):
            group[0].tree = None
        return
    middle = len(group) // 2
    _confirm(rows, group[:middle], to_sql)
    _confirm(rows, group[middle:], to_sql)


def judge(spark: SparkSession, world: World, asked: Sequence[Asked], stats: DataFrame | None = None) -> Verdict:
    """Evaluate the generated condition of every predicate for every file, and compare."""
    stats = world.stats if stats is None else stats
    verdict = Verdict()
    with settings(spark, FAST):
        for start in range(0, len(asked), BATCH):
            _judge(world, asked[start : start + BATCH], stats, verdict)
    return verdict


def _judge(world: World, group: Sequence[Asked], stats: DataFrame, verdict: Verdict) -> None:
    source = module("files.stats_source").check_shape(stats)
    covered: dict[Any, None] = {}
    known = [item for item in group if item.tree is not None]
    for item in known:
        covered |= dict.fromkeys(source.covered(item.tree))
    names = module("files.evaluate").stats_names(list(covered))
    make = module("condition.translate").Translator
    conditions = []
    for item in known:
        condition = make(names, item.types).translate(item.tree)
        conditions.append(module("condition.translate").keep_sql(condition, names))
        verdict.understood += module("condition.condition").can_exclude(condition)
    kept = _keep(module("files.evaluate").with_names(stats, names), conditions, world.files)
    for item, keep in zip(known, kept, strict=True):
        _compare(world, item, keep, verdict)
    for item in group:
        if item.tree is None:
            _compare(world, item, np.ones(world.files, dtype=bool), verdict)


def _keep(base: DataFrame, conditions: list[str], files: int) -> list[np.ndarray[Any, Any]]:
    if not conditions:
        return []
    try:
        keep = [f"{condition} AS k{number}" for number, condition in enumerate(conditions)]
        found = base.selectExpr("try_cast(file_path AS int)", "file_size", *keep).collect()
    except PySparkException:
        if len(conditions) == 1:
            return [np.ones(files, dtype=bool)]  # an error in the condition is a full read
        middle = len(conditions) // 2
        return _keep(base, conditions[:middle], files) + _keep(base, conditions[middle:], files)
    seen = np.zeros(files, dtype=int)
    table = np.ones((files, len(conditions)), dtype=bool)
    for row in found:
        number, size = row[0], row[1]
        if number is None or not 0 <= number < files:
            continue
        seen[number] += 1
        table[number] = list(row)[2:] if size == number else True
    table[seen != 1] = True  # no statistics, or more than one row of them
    return [table[:, n] for n in range(len(conditions))]


def _compare(world: World, item: Asked, keep: np.ndarray[Any, Any], verdict: Verdict) -> None:
    verdict.predicates += 1
    verdict.decisions += len(keep)
    verdict.kept += int(keep.sum())
    verdict.needed += int(item.matches.sum())
    lost = np.nonzero(item.matches & ~keep)[0]
    if len(lost):
        verdict.unsound.append(describe(world, item, int(lost[0])))


def describe(world: World, item: Asked, number: int) -> str:
    """Return seed, predicate, rows, stats and decision of a file that was wrongly excluded."""
    columns = {inner.name for inner in item.tree.walk() if type(inner).__name__ == "Column"} if item.tree else set()
    rows = [{name: row.get(name) for name in sorted(columns)} for row in world.rows_of(number)]
    # Through text: Python has no dates before the year 1.
    text = world.stats.where(f"file_path = '{number}'").selectExpr("row_count", "to_json(columns)").collect()[0]
    shown = {name: json.loads(text[1]).get(name) for name in columns}
    return (
        f"seed {world.seed}, file {number}: excluded, though rows match\n  predicate: {item.text}\n  rows: {rows}\n"
        f"  stats: rows {text[0]}, {shown}\n"
    )


def shrink(spark: SparkSession, world: World, text: str) -> str:
    """Return the smallest part of a predicate that is unsound by itself."""
    to_sql = module("predicate.tree").to_sql
    best = text
    while True:
        whole = ask(spark, world, [best])
        understand(spark, world, whole)
        tree = whole[0].tree if whole else None
        parts = sorted({to_sql(child) for child in tree.walk() if child is not tree} if tree else set(), key=len)
        asked = ask(spark, world, [part for part in parts if len(part) < len(best)])
        understand(spark, world, asked)
        failing = [item.text for item in asked if judge(spark, world, [item]).unsound]
        if not failing:
            return best
        best = failing[0]


def _expr(sql: str) -> Any:
    from pyspark.sql.functions import expr

    return expr(sql)
