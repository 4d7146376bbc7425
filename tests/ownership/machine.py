"""The sequences that hypothesis generates: acts of the world in any order."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from pathlib import Path

from hypothesis import note
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule
from pyspark.sql import SparkSession

from dbt_zorder.spark.catalog import TableName
from tests.ownership.kinds import is_mended
from tests.ownership.world import World

TABLES = (("a", 0), ("b", 0), ("a", 1), ("c", 0))
"""Identifier and schema of the tables: the third has the name of the first, ``b`` has partitions."""

STRANGERS = ("a__zorder_prev", "a__zorder_next", "a__zorder_stats")
VERSION = "v20240101T000000000-0123abcd"
OURS = st.sampled_from(TABLES)
HALF = st.booleans()


class Machine(RuleBasedStateMachine):
    """Acts on a world of its own."""

    spark: SparkSession
    counts: Counter[str]

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="zorder_own_"))
        self.world = World(self.spark, self.folder / "world")

    def teardown(self) -> None:
        try:
            if not self.world.is_broken:
                self.world.check_reads()
        finally:
            self.counts["steps"] += self.world.steps
            self.counts["refused"] += self.world.refused
            note("\n".join(self.world.log))
            self.world.close()
            shutil.rmtree(self.folder, ignore_errors=True)

    def _table(self, of: tuple[str, int]) -> TableName:
        return self.world.name(*of)

    def _there(self, choice: int) -> TableName:
        """Return a table that is there, or one that is not if none is."""
        tables = list(self.world.tables)
        return tables[choice % len(tables)] if tables else self._table(TABLES[0])

    # ---- what is ours

    @rule(of=OURS, root=st.sampled_from(("", "", "shared", "two")), keeps=HALF)
    def build(self, of: tuple[str, int], root: str, keeps: bool) -> None:
        self.world.build(self._table(of), root, 24.0 if keeps else 0.0)

    @precondition(lambda self: is_mended("root in a managed folder"))
    @rule(of=OURS, root=st.sampled_from(("one/a", "one/a__zorder", "one/c", "shared/a__zorder")))
    def build_inside(self, of: tuple[str, int], root: str) -> None:
        self.world.build(self._table(of), root)

    @rule(choice=st.integers(0, 9), overwrite=HALF, rewrite=HALF)
    def increment(self, choice: int, overwrite: bool, rewrite: bool) -> None:
        self.world.increment(self._there(choice), overwrite=overwrite, rewrite=rewrite)

    @rule(choice=st.integers(0, 9))
    def append(self, choice: int) -> None:
        self.world.increment(self._there(choice))

    @rule(choice=st.integers(0, 9))
    def optimize(self, choice: int) -> None:
        self.world.optimize(self._there(choice))

    @rule(choice=st.integers(0, 9))
    def drop(self, choice: int) -> None:
        self.world.drop(self._there(choice))

    @rule(of=OURS)
    def plain_model(self, of: tuple[str, int]) -> None:
        self.world.plain_model(self._table(of))

    @rule(choice=st.integers(0, 9), to=st.sampled_from((*TABLES, ("d", 0))))
    def rename(self, choice: int, to: tuple[str, int]) -> None:
        old = self._there(choice)
        self.world.rename(old, TableName(old.schema, to[0]))

    @rule(of=OURS, keep=st.sampled_from((0, 0, 1)), root=st.sampled_from(("", "", "shared", "two")), dry_run=HALF)
    def vacuum(self, of: tuple[str, int], keep: int, root: str, dry_run: bool) -> None:
        self.world.vacuum(self._table(of), root, keep, dry_run=dry_run)

    @rule(choice=st.integers(0, 9))
    def rollback(self, choice: int) -> None:
        self.world.rollback(self._there(choice))

    # ---- what users do

    @rule(of=OURS)
    def create(self, of: tuple[str, int]) -> None:
        self.world.create(self._table(of))

    @precondition(lambda self: is_mended("plain table at a root"))
    @rule(again=HALF, identifier=st.sampled_from(("a__zorder", "c__zorder")))
    def create_at_a_root(self, again: bool, identifier: str) -> None:
        table = self.world.name(identifier)
        if again:
            self.world.plain_model(table)
        else:
            self.world.create(table)

    @precondition(lambda self: is_mended("strangers of reserved names"))
    @rule(identifier=st.sampled_from(STRANGERS))
    def create_stranger(self, identifier: str) -> None:
        self.world.create(self.world.name(identifier))

    @rule(choice=st.integers(0, 9))
    def insert(self, choice: int) -> None:
        self.world.insert(self._there(choice))

    @rule(choice=st.integers(0, 9))
    def sql_drop(self, choice: int) -> None:
        self.world.sql_drop(self._there(choice))

    @rule(choice=st.integers(0, 9), to=st.sampled_from((*TABLES, ("d", 0))))
    def sql_rename(self, choice: int, to: tuple[str, int]) -> None:
        old = self._there(choice)
        self.world.sql_rename(old, TableName(old.schema, to[0]))

    @precondition(lambda self: is_mended("clones"))
    @rule(choice=st.integers(0, 9), to=st.sampled_from((("a", 0), ("a", 1), ("d", 0), ("d", 1))))
    def clone(self, choice: int, to: tuple[str, int]) -> None:
        self.world.clone(self._there(choice), self._table(to))

    @rule(choice=st.integers(0, 9), to=st.sampled_from(("two/a__zorder", "shared/a__zorder", "copy/a__zorder")))
    def copy_root(self, choice: int, to: str) -> None:
        self.world.copy_root(self._there(choice), to)

    @precondition(lambda self: is_mended("copied version"))
    @rule(choice=st.integers(0, 9), to=st.sampled_from((("a", 1), ("a", 0), ("d", 0))), beside=HALF)
    def serve_a_copy(self, choice: int, to: tuple[str, int], beside: bool) -> None:
        table, served = self._there(choice), self._table(to)
        if beside:
            self.world.copy_version(table, served, same_name=True)
        else:
            self.world.copy_root(table, f"{('one', 'two')[to[1]]}/{to[0]}__zorder", served)

    @rule(choice=st.integers(0, 9))
    def copy_version(self, choice: int) -> None:
        self.world.copy_version(self._there(choice))

    @precondition(lambda self: is_mended("other catalog"))
    @rule(of=OURS, root=st.sampled_from(("shared", "", "two")), keeps_entry=HALF)
    def other_catalog(self, of: tuple[str, int], root: str, keeps_entry: bool) -> None:
        self.world.other_catalog(self._table(of), root, keeps_entry=keeps_entry)

    @precondition(lambda self: is_mended("restored entry"))
    @rule(choice=st.integers(0, 9), version=st.integers(0, 9))
    def restore(self, choice: int, version: int) -> None:
        self.world.restore(self._there(choice), version)

    @rule(
        where=st.sampled_from(("one", "one/a__zorder", "shared", "two/a__zorder", "shared/a__zorder", "one/b__zorder")),
        name=st.sampled_from(("notes.txt", "sales_2024.parquet", VERSION)),
    )
    def plant(self, where: str, name: str) -> None:
        self.world.plant(where, name)

    @precondition(lambda self: is_mended("foreign files in our folders"))
    @rule(choice=st.integers(0, 9))
    def plant_inside(self, choice: int) -> None:
        self.world.plant_inside(self._there(choice))
