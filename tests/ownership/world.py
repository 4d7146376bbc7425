"""Tables of two schemas whose folders meet, a model of the rows of each, and what must never change.

Every act is either a user's, by plain SQL or by hand, or ours. After each, every table that the catalog serves must
have the rows of the model, and every file that none of our builds wrote must be as it was.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from dbt_zorder import pruning
from dbt_zorder.errors import ZorderError
from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableName, describe, location_of
from dbt_zorder.tables.batch import Batch
from dbt_zorder.tables.parquet.build import build
from dbt_zorder.tables.parquet.incremental import begin, increment
from dbt_zorder.tables.parquet.operations.drop import drop_table, rename_stats
from dbt_zorder.tables.parquet.operations.rollback import rollback
from dbt_zorder.tables.parquet.operations.vacuum import vacuum
from dbt_zorder.tables.parquet.rewrite import optimize, request_from_marker
from dbt_zorder.tables.parquet.stats_view import stats_table
from dbt_zorder.tables.version import is_version, new_version, version_of
from tests.ownership.disk import ForeignFiles, Lost, RowReader, Rows, path_of
from tests.ownership.kinds import is_mended
from tests.support import settings, unique

_PRUNED = 2
"""Number of tables whose pruned reads are compared: these reads take longest."""

CATALOG = "spark.zorder.catalogId"
"""Setting by which a session says which catalog it has."""


@dataclass
class Expected:
    """The rows that the model expects in a table.

    Attributes:
        rows: numbers of its rows.
        by_user: whether a user's own ``CREATE TABLE ... LOCATION`` chose its place.
    """

    rows: Rows
    by_user: bool = False


class World:
    """The tables, and what is done to them.

    Attributes:
        tables: what the catalog is to serve.
        foreign: the files that no build of ours wrote.
        versions: rows of each version by its path, as when the table that was first served from it was so last.
        owners: these tables.
        steps: acts that were carried out, refused ones among them.
        refused: how many of them were.
        was_refused: whether the last one was.
        is_broken: whether an act has failed, or been found to have lost something.
        log: the acts, for people.
    """

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.folder = folder
        self.tables: dict[TableName, Expected] = {}
        self.foreign = ForeignFiles()
        self.versions: dict[str, Rows] = {}
        self.owners: dict[str, TableName] = {}
        self.steps = 0
        self.refused = 0
        self.was_refused = False
        self.is_broken = False
        self.log: list[str] = []
        self._served: dict[TableName, str] = {}
        self._numbers = count(1)
        self._reader = RowReader()
        self.schemas = [unique("own"), unique("own")]
        for schema, name in zip(self.schemas, ("one", "two"), strict=True):
            (folder / name).mkdir(parents=True)
            spark.sql(f"CREATE DATABASE {schema} LOCATION '{folder / name}'")

    def close(self) -> None:
        """Drop all that is there."""
        for schema in self.schemas:
            self.spark.sql(f"DROP DATABASE IF EXISTS {schema} CASCADE")
        shutil.rmtree(self.folder)

    def name(self, identifier: str, schema: int = 0) -> TableName:
        return TableName(self.schemas[schema], identifier)

    # ---- what is ours

    def build(self, table: TableName, root: str = "", grace: float = 0.0) -> bool:
        """Build a table as a model with ``zorder_by``, of new rows."""
        rows, request = self._new_rows(), self._request(table, root, grace)
        return self._ours(
            f"build in {root!r} grace {grace}",
            lambda: build(self.spark, self._frame(rows), request),
            table,
            lambda: rows,
        )

    def increment(self, table: TableName, *, overwrite: bool = False, rewrite: bool = False) -> bool:
        """Add a batch as an incremental model; without partitions ``overwrite`` replaces all rows."""
        if table not in self.tables:
            return False
        if not self._stands(table) and not is_mended("batches where the version is gone"):
            return False
        rows, request = self._new_rows(), self._request(table)
        batch = Batch(overwrite=overwrite, may_rewrite=rewrite)

        def run() -> None:
            before = begin(self.spark, table)
            increment(self.spark, self._frame(rows), request, batch, before)

        old, stands = self.tables[table].rows, self._stands(table)
        if overwrite and request.spec.partition_by:
            parts = {number % 2 for number in rows}
            old = tuple(number for number in old if number % 2 not in parts)
        elif overwrite:
            old = ()
        done = self._ours(f"increment overwrite={overwrite}", run, table, lambda: tuple(sorted((*old, *rows))))
        if not (stands or overwrite or self.was_refused):
            msg = f"the folder of {table} was gone, and a batch alone became the table"
            raise Lost(msg)
        return done

    def optimize(self, table: TableName) -> bool:
        """Build a table anew from its own rows."""
        if table not in self.tables:
            return False
        rows = self.tables[table].rows
        return self._ours(
            "optimize",
            lambda: optimize(self.spark, request_from_marker(self.spark, table), dry_run=False),
            table,
            lambda: rows,
        )

    def drop(self, table: TableName) -> bool:
        """Drop a table as dbt does: by our way, and by SQL where it is none of ours."""

        def run() -> None:
            if not drop_table(self.spark, table):
                self._drop_by_sql(table)

        return self._ours("drop", run, table, lambda: None)

    def plain_model(self, table: TableName) -> bool:
        """Build a table as a model without ``zorder_by``: dbt drops what is there first."""
        return self.drop(table) and not self.was_refused and self.create(table)

    def rename(self, old: TableName, new: TableName) -> bool:
        """Rename a table as dbt does."""
        if old not in self.tables or new in self.tables:
            return False
        return self.sql_rename(old, new, lambda: rename_stats(self.spark, old, new))

    def vacuum(self, table: TableName, root: str = "", keep: int = 0, *, dry_run: bool = False) -> bool:
        """Delete old versions without a period of grace; where the entry leads nowhere, none may go."""
        before = self._folders_of_versions()
        dangles = table in self.tables and not self._stands(table)

        def run() -> None:
            vacuum(self.spark, table, keep, 0.0, self._root(root), dry_run=dry_run)

        done = self._ours(f"vacuum dry_run={dry_run}", run, table, self._same(table))
        gone = before - self._folders_of_versions()
        if gone and (dry_run or dangles):
            msg = f"{'a dry run' if dry_run else 'a vacuum of a table whose version is gone'} deleted {sorted(gone)}"
            raise Lost(msg)
        return done

    def rollback(self, table: TableName) -> bool:
        """Serve the version before, whichever it is."""
        return self._ours("rollback", lambda: rollback(self.spark, table), table, lambda: self._version_rows(table))

    # ---- what users do

    def create(self, table: TableName) -> bool:
        """Make a plain managed table of new rows."""
        rows = self._new_rows()
        if table in self.tables:
            return False
        if self._sql(f"CREATE TABLE {table.sql} (id BIGINT, k INT, p INT) USING parquet"):
            self.tables[table] = Expected(rows)
            self._write(table, rows)
        return self._done(f"create {table}")

    def insert(self, table: TableName) -> bool:
        """Add rows to a plain managed table by SQL."""
        info = describe(self.spark, table)
        if table not in self.tables or info is None or info.kind != "MANAGED":
            return False
        rows = self._new_rows()
        self._after_change(table, tuple(sorted((*self.tables[table].rows, *rows))))
        self._write(table, rows)
        return self._done(f"insert {table}")

    def sql_drop(self, table: TableName) -> bool:
        """Drop a table by plain SQL; what users themselves put into the folder of a managed one goes with it."""
        if table not in self.tables:
            return False
        self._drop_by_sql(table)
        del self.tables[table]
        return self._done(f"sql_drop {table}")

    def sql_rename(self, old: TableName, new: TableName, then: Callable[[], None] | None = None) -> bool:
        """Rename a table by plain SQL: the folder of a managed one moves, with what users put into it."""
        if old not in self.tables or new in self.tables:
            return False
        info = describe(self.spark, old)
        assert info is not None
        if self._sql(f"ALTER TABLE {old.sql} RENAME TO {new.sql}"):
            if info.kind == "MANAGED":
                self._user_takes(path_of(info.location), old)
            self.tables[new] = self.tables.pop(old)
            self.owners = {path: new if owner == old else owner for path, owner in self.owners.items()}
            if then is not None:
                then()
            self._own_files(new)
        return self._done(f"rename {old} {new}")

    def clone(self, table: TableName, to: TableName) -> bool:
        """Make a table over the very folder that another one is served from."""
        if table not in self.tables or to in self.tables:
            return False
        info = describe(self.spark, table)
        if info is None or not self._stands(table):
            return False
        self._register(to, path_of(info.location), self.tables[table].rows, info.partition_columns)
        return self._done(f"clone {table} {to}")

    def copy_root(self, table: TableName, to: str, served: TableName | None = None) -> bool:
        """Copy all versions of a table by ``cp -r``, and make a table over the copy of the one that is served."""
        info = describe(self.spark, table)
        if table not in self.tables or info is None or not version_of(info.location) or not self._stands(table):
            return False
        target = self.folder / to
        if target.exists() or (served is not None and served in self.tables):
            return False
        place = path_of(info.location)
        shutil.copytree(place.parent, target)
        for copied in target.iterdir():  # a build may put a version of its own beside them
            self.foreign.seal(copied)
        if served is not None:
            self._register(served, target / place.name, self.tables[table].rows, info.partition_columns)
        return self._done(f"copy_root {table} {to} {served}")

    def copy_version(self, table: TableName, served: TableName | None = None, *, same_name: bool = False) -> bool:
        """Copy the version that is served, beside it as if it were another, or into the root of table ``c``."""
        info = describe(self.spark, table)
        if table not in self.tables or info is None or not version_of(info.location) or not self._stands(table):
            return False
        place = path_of(info.location)
        target = self.folder / "one/c__zorder" / place.name if same_name else place.with_name(new_version())
        if target.exists() or (served is not None and served in self.tables):
            return False
        shutil.copytree(place, target)
        self.foreign.seal(target)
        if served is not None:
            self._register(served, target, self.tables[table].rows, info.partition_columns)
        return self._done(f"copy_version {table} {served} {same_name}")

    def other_catalog(self, table: TableName, root: str, *, keeps_entry: bool) -> bool:
        """Let a catalog elsewhere have built a table of this name below a root that both use.

        With ``keeps_entry`` this catalog is a copy of that one: it leads to the other's version as well.
        """
        if table in self.tables:
            return False
        rows = self._new_rows()
        before = self._folders_of_versions()
        try:
            with settings(self.spark, {CATALOG: "elsewhere"}):
                build(self.spark, self._frame(rows), self._request(table, root, 24.0))
        except ZorderError:
            return False
        for version in self._folders_of_versions() - before:
            self.foreign.seal(Path(version))
        self.spark.sql(f"DROP TABLE IF EXISTS {stats_table(table).sql}")
        if keeps_entry:
            self.tables[table] = Expected(rows, by_user=True)
        else:
            self.spark.sql(f"DROP TABLE {table.sql}")
        return self._done(f"other_catalog {table} {root} {keeps_entry}")

    def restore(self, table: TableName, choice: int) -> bool:
        """Point a table's entry to a version that it was served from once, also to one that is gone."""
        info = describe(self.spark, table)
        if table not in self.tables or info is None or not version_of(info.location):
            return False
        root = str(path_of(info.location).parent)
        others = sorted(
            path for path in self.versions if path.startswith(f"{root}/") and path != str(path_of(info.location))
        )
        others = [path for path in others if self.owners.get(path) == table]
        if not others:
            return False
        path = others[choice % len(others)]
        self._sql(f"ALTER TABLE {table.sql} SET LOCATION '{path}'")
        self.spark.sql(f"REFRESH TABLE {table.sql}")
        self.tables[table].rows = self.versions[path] if Path(path).exists() else ()
        return self._done(f"restore {table} {path}")

    def plant(self, where: str, name: str) -> bool:
        """Put a file into a folder of the world, or a folder that is named like a version and has no marker."""
        place = self.folder / where
        if not place.exists():
            return False
        target = place / name
        if target.exists():
            return False
        if is_version(name):
            target.mkdir()
            target = target / "part-00000.parquet"
        target.write_text("not ours")
        self.foreign.note(target)
        return self._done(f"plant {target.relative_to(self.folder)}")

    def plant_inside(self, table: TableName) -> bool:
        """Put a file that no reader sees as rows into the folder that a table is served from."""
        if table not in self.tables or not self._stands(table):
            return False
        folder = path_of(location_of(self.spark, table))
        return self.plant(str(folder.relative_to(self.folder)), "_notes.txt")

    # ---- what must be true

    def check(self) -> None:
        """Compare the catalog and the disk with the model.

        Raises:
            Lost: they differ.
        """
        self.is_broken = True
        self._served = self._places()
        for table, expected in self.tables.items():
            location = self._served[table]
            if not location:
                msg = f"{table} is not there any more"
                raise Lost(msg)
            there = self._reader.rows_at(path_of(location))
            if there != expected.rows:
                msg = f"{table} has rows {there}, not {expected.rows}, at {location}"
                raise Lost(msg)
            place = str(path_of(location))
            # what somebody else writes into a version must not show when its table is rolled back to it
            if version_of(location) and self.owners.setdefault(place, table) == table:
                self.versions[place] = expected.rows
        self.foreign.check()
        self.is_broken = False

    def check_reads(self) -> None:
        """Compare what plain SQL gives of all tables with the model, and what pruned reads give of two.

        Raises:
            Lost: they differ.
        """
        if not self.tables:
            return
        names = list(self.tables)
        for table in names:
            self.spark.catalog.refreshTable(table.sql)
        names.sort(key=lambda table: not version_of(self._served[table]))  # those with stats first
        middle = max(
            (expected.rows[len(expected.rows) // 2] for expected in self.tables.values() if expected.rows), default=0
        )
        parts = [
            f"SELECT {number} AS t, {kind} AS kind, id FROM {table.sql} {where}"
            for number, table in enumerate(names)
            for kind, where in ((0, ""), (1, f"WHERE id < {middle}"))
            if not kind or number < _PRUNED
        ]
        found: dict[tuple[int, int], list[int]] = {}
        for row in pruning.query(self.spark, " UNION ALL ".join(parts)).collect():
            found.setdefault((row[0], row[1]), []).append(row[2])
        for number, table in enumerate(names):
            rows = self.tables[table].rows
            for kind, wanted in ((0, rows), (1, tuple(row for row in rows if row < middle))):
                if kind and number >= _PRUNED:
                    continue
                given = tuple(sorted(found.get((number, kind), [])))
                if given != wanted:
                    msg = f"{table}: {('plain SQL', 'a pruned read')[kind]} gives {given}, not {wanted}"
                    raise Lost(msg)

    # ---- the model's own

    def _ours(self, what: str, run: Callable[[], object], table: TableName, becomes: Callable[[], Rows | None]) -> bool:
        """Carry out what is ours; a refusal with a sentence is fine, and must change nothing."""
        if self._is_left_behind(table) and not is_mended("clones left behind"):
            return False
        before = self._folders_of_versions()
        managed, self.was_refused, self.is_broken = self._managed_folder(table), False, True
        self.log.append(f"{what} {table}")
        try:
            run()
        except ZorderError as exc:
            self.was_refused = True
            self.refused += 1
            self.log.append(f"  refused: {exc}")
            if self._places() != {name: self._served[name] for name in self.tables}:
                msg = f"refused, and yet tables lie elsewhere: {exc}"
                raise Lost(msg) from exc
            gained = self._folders_of_versions() - before
            if gained:
                msg = f"refused, and yet {gained} is there: {exc}"
                raise Lost(msg) from exc
            return self._done()
        lost = {path: self.owners.get(path) for path in before - self._folders_of_versions()}
        others = [owner for owner in lost.values() if owner not in (None, table) and owner in self.tables]
        if others and is_mended("versions to roll back to"):
            msg = f"versions of other tables were deleted: {lost}"
            raise Lost(msg)
        if managed is not None and self._managed_folder(table) is None:
            self.foreign.forget_of(table)
        rows = becomes()
        if rows is None:
            self.tables.pop(table, None)
        elif table in self.tables or describe(self.spark, table) is not None:
            self._after_change(table, rows)
        return self._done()

    def _after_change(self, table: TableName, rows: Rows) -> None:
        """Note a table's rows; tables over the same folder see what is written there in place."""
        expected = self.tables.setdefault(table, Expected(rows))
        expected.rows = rows
        place = location_of(self.spark, table)
        for other, also in self.tables.items():
            if other != table and location_of(self.spark, other) == place:
                also.rows = rows

    def _is_left_behind(self, table: TableName) -> bool:
        """Return whether a table is served from a version that another one was served from, and has moved on from."""
        place = location_of(self.spark, table)
        owner = self.owners.get(str(path_of(place)), table)
        return owner != table and owner in self.tables and location_of(self.spark, owner) != place

    def _version_rows(self, table: TableName) -> Rows | None:
        return self.versions.get(str(path_of(location_of(self.spark, table))), ())

    def _same(self, table: TableName) -> Callable[[], Rows | None]:
        expected = self.tables.get(table)
        return lambda: None if expected is None else expected.rows

    def _places(self) -> dict[TableName, str]:
        return {table: location_of(self.spark, table) for table in self.tables}

    def _stands(self, table: TableName) -> bool:
        return path_of(location_of(self.spark, table)).exists()

    def _managed_folder(self, table: TableName) -> Path | None:
        info = describe(self.spark, table)
        return path_of(info.location) if info is not None and info.kind == "MANAGED" else None

    def _drop_by_sql(self, table: TableName) -> None:
        folder = self._managed_folder(table)
        if folder is not None:
            self._user_takes(folder, table)
        self.spark.sql(f"DROP TABLE IF EXISTS {table.sql}")

    def _user_takes(self, folder: Path, table: TableName) -> None:
        """Forget what users themselves put into a folder that goes, or moves, with a managed table of theirs."""
        self.foreign.forget_below(folder)
        inside = [
            other
            for other, expected in self.tables.items()
            if other != table and expected.by_user and path_of(location_of(self.spark, other)).is_relative_to(folder)
        ]
        for other in inside:
            self.spark.sql(f"DROP TABLE IF EXISTS {other.sql}")
            del self.tables[other]

    def _register(self, table: TableName, folder: Path, rows: Rows, parts: Iterable[str]) -> None:
        by = f"PARTITIONED BY ({', '.join(parts)})" if list(parts) else ""
        self.spark.sql(f"CREATE TABLE {table.sql} (id BIGINT, k INT, p INT) USING parquet {by} LOCATION '{folder}'")
        self.tables[table] = Expected(rows, by_user=True)

    def _write(self, table: TableName, rows: Rows) -> None:
        """Write rows into a managed table as Spark would, without its job."""
        folder = self._managed_folder(table)
        assert folder is not None
        folder.mkdir(exist_ok=True)
        columns = zip(*((number, number * 7 % 5, number % 2) for number in rows), strict=True)
        types = (pa.int64(), pa.int32(), pa.int32())
        arrays = [pa.array(column, kind) for column, kind in zip(columns, types, strict=True)]
        pq.write_table(pa.table(arrays, ["id", "k", "p"]), folder / f"part-{uuid.uuid4()}-c000.snappy.parquet")
        self._own_files(table)
        self.spark.catalog.refreshTable(table.sql)

    def _own_files(self, table: TableName) -> None:
        folder = self._managed_folder(table)
        if folder is not None:
            for path in folder.iterdir():
                if path.is_file():
                    self.foreign.note(path, table)

    def _folders_of_versions(self) -> set[str]:
        return {str(path) for path in self.folder.glob("**/v*T*-*") if path.is_dir()}

    def _root(self, root: str) -> str | None:
        return str(self.folder / root) if root else None

    def _request(self, table: TableName, root: str = "", grace: float = 0.0) -> BuildRequest:
        spec = LayoutSpec(by=["id"], files=2, partition_by=["p"] if table.identifier.startswith("b") else [])
        return BuildRequest(
            table, spec, location_root=self._root(root), keep_versions=0 if not grace else 2, grace_hours=grace
        )

    def _new_rows(self) -> Rows:
        return tuple(next(self._numbers) for _ in range(3))

    def _query(self, rows: Rows) -> str:
        values = ", ".join(f"({number}L, {number * 7 % 5}, {number % 2})" for number in rows)
        return f"SELECT * FROM VALUES {values} AS rows(id, k, p)"

    def _frame(self, rows: Rows) -> DataFrame:
        return self.spark.sql(self._query(rows))

    def _sql(self, statement: str) -> bool:
        """Run what a user says; Spark may refuse it."""
        try:
            self.spark.sql(statement)
        except PySparkException as exc:
            self.log.append(f"  Spark refused: {str(exc)[:100]}")
            return False
        return True

    def _done(self, what: str = "") -> bool:
        self.steps += 1
        if what:
            self.log.append(what)
        self.check()
        return True
