"""Operations on z-ordered tables that ``dbt run-operation`` and this package's data tests call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dbt.adapters.base import BaseRelation
from dbt.adapters.events.logging import AdapterLogger
from dbt_common.events.functions import fire_event
from dbt_common.events.types import Note
from dbt_common.exceptions import CompilationError
from pyspark.sql import SparkSession

from dbt_zorder import option_parsers as values
from dbt_zorder import pruning
from dbt_zorder.adapter.advise import advise_on_table
from dbt_zorder.adapter.config import ModelSettings
from dbt_zorder.adapter.maintenance import Budget, Maintenance, Steps
from dbt_zorder.adapter.messages.progress import progress
from dbt_zorder.adapter.messages.spark_errors import dbt_errors
from dbt_zorder.adapter.names import existing_name, table_name
from dbt_zorder.adapter.readers import Readers
from dbt_zorder.adapter.requests import checked_settings, model_request, retention_settings
from dbt_zorder.errors import ConfigError, ZorderError, did_you_mean
from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableInfo, TableName, describe
from dbt_zorder.spark.columns import case_sensitive, fold_case
from dbt_zorder.stats.table_state import FORMATS
from dbt_zorder.tables.compact import compact
from dbt_zorder.tables.diagnose import measure_health
from dbt_zorder.tables.health import TableHealth
from dbt_zorder.tables.health_limits import check_limits, exceeded
from dbt_zorder.tables.parquet.operations.rebuild_stats import rebuild_stats
from dbt_zorder.tables.parquet.operations.rollback import rollback
from dbt_zorder.tables.parquet.operations.vacuum import vacuum
from dbt_zorder.tables.parquet.operations.verify import verify_table
from dbt_zorder.tables.parquet.rewrite import request_from_marker
from dbt_zorder.tables.registry import existing, for_format, open_table
from dbt_zorder.tables.version import version_of

_LOG = AdapterLogger("Zorder")


@dataclass(frozen=True)
class Operations:
    """The operations and data tests that macros call, by ``adapter.zorder_operations()``.

    Attributes:
        open_session: function that returns the session of this thread; a name that no node has needs none.
        find_readers: function that returns what the project reads from a table.
    """

    open_session: Callable[[], SparkSession]
    find_readers: Callable[[TableName], Readers]

    @property
    def session(self) -> SparkSession:
        """The Spark session of this thread's connection."""
        return self.open_session()

    def optimize(
        self,
        relation: BaseRelation,
        model: Mapping[str, Any] | None,
        dry_run: bool,
        zorder_by: list[str] | str | None = None,
        file_size: str | int | None = None,
    ) -> dict[str, Any]:
        """Rebuild a table from its own rows, or report what that would do. ``text`` is the report for printing."""
        with dbt_errors():
            check_dry_run("zorder_optimize", dry_run)
            settings = checked_settings(model) if model else None
            if zorder_by is not None or file_size is not None:
                by, size = check_columns(model if settings is not None else None, zorder_by, file_size)
                with progress(self.session, str(table_name(relation))):
                    return compact(self.session, table_name(relation), by, size, dry_run=dry_run).to_dict()
            if settings is not None and model is not None:
                request = model_request(settings, relation, model, sensitive=case_sensitive(self.session))
            else:
                request = request_from_marker(self.session, table_name(relation))
            with progress(self.session, str(table_name(relation))):
                return optimize_table(self.session, request, settings, dry_run=dry_run)

    def health(
        self, relation: BaseRelation, model: Mapping[str, Any] | None, columns: list[str] | str | None = None
    ) -> dict[str, Any]:
        """Return the health of a table from its statistics. ``text`` is a printable report."""
        with dbt_errors():
            return measured(self.session, relation, model, columns).to_dict()

    def unhealthy(
        self,
        relation: BaseRelation,
        model: Mapping[str, Any] | None,
        columns: list[str] | str | None,
        limits: Mapping[str, Any],
    ) -> list[dict[str, Any]]:
        """Return what exceeds its limit in the health of a table; nothing of a view, which has no files."""
        with dbt_errors():
            checked = check_limits(limits)
            table = table_name(relation)
            if _is_view(table, describe(self.session, table), "zorder_healthy"):
                return []
            return exceeded(measured(self.session, relation, model, columns), checked)

    def maintain(
        self,
        targets: Sequence[Mapping[str, Any]],
        dry_run: bool,
        budget_bytes: object,
        budget_minutes: object,
        strict: object,
    ) -> dict[str, Any]:
        """Rewrite tables that gain, delete their old versions and verify them. Return failures, and a ``text``.

        Args:
            targets: relation and node of each table.
            dry_run: change nothing.
            budget_bytes, budget_minutes: limits of the run; None for none.
            strict: whether the macro raises if a table failed.
        """
        with dbt_errors():
            check_dry_run("zorder_maintain", dry_run)
            values.read("zorder_maintain: strict", strict, values.boolean)
            run = Maintenance(Budget.of(budget_bytes, budget_minutes), dry_run, lambda line: fire_event(Note(msg=line)))
            steps = [self._steps(target["relation"], target["node"], dry_run=dry_run) for target in targets]
            return {"text": run.run(steps), "failed": run.failed}

    def _steps(self, relation: BaseRelation, model: Mapping[str, Any] | None, *, dry_run: bool) -> Steps:
        """Return the steps by which a table is maintained."""
        table = table_name(relation)
        info = describe(self.session, table)
        is_own = info is not None and bool(version_of(info.location))
        is_table = is_own or (info is not None and info.provider in FORMATS)
        return Steps(
            str(table),
            (lambda: measured(self.session, relation, model, None)) if is_table else None,
            lambda: int(self.optimize(relation, model, dry_run=False)["files_after"]),
            (lambda: len(self.vacuum(relation, model, dry_run, None, None)["deleted"])) if is_own else None,
            (lambda: list(self.verify(relation)["findings"])) if is_own else None,
        )

    def advise(
        self,
        relation: BaseRelation,
        model: Mapping[str, Any] | None,
        queries: list[str],
        weights: Mapping[str, float],
    ) -> dict[str, Any]:
        """Return advice on the columns to cluster a relation by. ``text`` is the advice for printing."""
        table = table_name(relation)
        with dbt_errors():
            return advise_on_table(self.session, table, model, self.find_readers(table), queries, weights)

    def explain(self, relation: BaseRelation, predicate: str) -> dict[str, Any]:
        """Return the files that a pruned read of a relation reads, and why. ``text`` is a printable table of them."""
        with dbt_errors():
            return explain_table(self.session, table_name(relation), predicate)

    def explain_sql(self, sql: str) -> dict[str, Any]:
        """Return the files that a statement reads of each z-ordered table, and why. ``text`` is a printable table."""
        with dbt_errors():
            return explain_sql(self.session, sql)

    def rebuild_stats(self, relation: BaseRelation, columns: list[str] | str | None = None) -> int:
        """Rebuild the stats of a table from its current files, and return the number of files."""
        names = [columns] if isinstance(columns, str) else columns or []
        with dbt_errors():
            return rebuild_stats(self.session, table_name(relation), names)

    def vacuum(
        self,
        relation: BaseRelation,
        model: Mapping[str, Any] | None,
        dry_run: bool,
        grace_hours: float | None,
        keep_versions: int | None,
    ) -> dict[str, Any]:
        """Delete old versions of a table. Return the names of the deleted ones, and a ``text`` to print."""
        with dbt_errors():
            check_dry_run("zorder_vacuum", dry_run)
            settings = retention_settings(model) if model else None
            return vacuum_table(
                self.session, table_name(relation), settings, keep_versions, grace_hours, dry_run=dry_run
            )

    def verify(self, relation: BaseRelation) -> dict[str, Any]:
        """Compare a table with its stats. Return the differences, and a ``text`` to print."""
        with dbt_errors():
            return compare_with_stats(self.session, table_name(relation))

    def rollback(self, relation: BaseRelation, version: str | None = None) -> list[str]:
        """Make an earlier version current. Return the names of the previous and of the new current version."""
        with dbt_errors():
            return list(rollback(self.session, table_name(relation), version))

    def mismatches(self, relation: BaseRelation, predicates: list[str] | str | None, made: int) -> list[Any]:
        """Return each predicate whose pruned and full results differ.

        Test the given predicates, and ``made`` further ones that are generated from the stats.
        """
        given = [predicates] if isinstance(predicates, str) else list(predicates or [])
        with dbt_errors():
            return find_mismatches(self.session, table_name(relation), given, made)

    def point_query_files(self, relation: BaseRelation, column: str) -> dict[str, Any]:
        """Return the number of ``files``, and the mean number that an equality query on a column would ``read``."""
        with dbt_errors():
            return count_point_query_files(self.session, table_name(relation), column)

    def raise_no_node(self, name: str, names: list[str]) -> None:
        """Raise the error for a name that no model, seed or snapshot has. It names the nearest existing one."""
        raise no_such_node(name, names)


def optimize_table(
    spark: SparkSession, request: BuildRequest, settings: ModelSettings | None, *, dry_run: bool
) -> dict[str, Any]:
    """Rebuild a table from its own rows, or report what that would do. ``text`` is the report for printing."""
    how = settings.optimize if settings is not None else "auto"
    return for_format(spark, request).optimize(request, how, dry_run=dry_run).to_dict()


def explain_table(spark: SparkSession, table: TableName, predicate: str) -> dict[str, Any]:
    """Return the files that a pruned read of a table reads, and why. ``text`` is a printable table of the same."""
    explanation = pruning.explain(spark, existing_name(spark, table).sql, predicate)
    return {**explanation.to_dict(), "text": str(explanation)}


def explain_sql(spark: SparkSession, sql: str) -> dict[str, Any]:
    """Return the files that a statement reads of each table, and why. ``text`` is a printable table of the same."""
    explanation = pruning.explain(spark, sql)
    return {**explanation.to_dict(), "text": str(explanation)}


def measured(
    spark: SparkSession, relation: BaseRelation, model: Mapping[str, Any] | None, columns: list[str] | str | None
) -> TableHealth:
    """Return the health of a relation, by the settings of its model if it has ``zorder_by``."""
    names = values.optional("zorder_health: columns", columns, values.column_names, ())
    settings = checked_settings(model) if model else None
    spec = LayoutSpec(by=())
    if settings is not None and model is not None:
        spec = model_request(settings, relation, model, sensitive=case_sensitive(spark)).spec
    return measure_health(spark, table_name(relation), names, spec, is_modelled=settings is not None)


def vacuum_table(
    spark: SparkSession,
    table: TableName,
    settings: ModelSettings | None,
    keep_versions: int | None,
    grace_hours: float | None,
    *,
    dry_run: bool,
) -> dict[str, Any]:
    """Delete old versions of a table.

    Args:
        spark: the session.
        table: the table.
        settings: settings of the table's model, which locate the versions. None if no model builds the table.
        keep_versions: number of versions to keep, which overrides the settings.
        grace_hours: grace period in hours, which overrides the settings.
        dry_run: whether to report without deleting.

    Returns:
        The names of the ``deleted`` versions, and a ``text`` to print. ``refused`` gives the reason if nothing was
        deleted because the current version is incomplete.
    """
    vacuumed = vacuum(
        spark,
        table,
        keep_versions if keep_versions is not None else settings.keep_versions if settings else 2,
        grace_hours if grace_hours is not None else settings.grace_hours if settings else 24.0,
        settings.location_root if settings else None,
        dry_run=dry_run,
    )
    return {"deleted": list(vacuumed.deleted), "refused": vacuumed.refused, "text": str(vacuumed)}


def compare_with_stats(spark: SparkSession, table: TableName) -> dict[str, Any]:
    """Compare a table with its stats, and return the differences as ``findings``, and a ``text`` to print.

    Return an error as a finding too, so that the operation continues with the next table.
    """
    try:
        found = open_table(spark, table)
        verified = verify_table(spark, table) if found is None else found.verify()
    except ZorderError as exc:
        return {"findings": [str(exc)], "text": str(exc)}
    return {"findings": list(verified.findings), "text": str(verified)}


def find_mismatches(spark: SparkSession, table: TableName, predicates: Sequence[str], made: int) -> list[Any]:
    """Return each predicate whose pruned answer differs from the full one.

    Args:
        spark: the session.
        table: the table to read.
        predicates: the user's predicates.
        made: number of additional predicates to generate from the stats.
    """
    name = existing_name(spark, table).sql
    return pruning.sound(spark, name, [*predicates, *pruning.make_predicates(spark, name, made)])


def count_point_query_files(spark: SparkSession, table: TableName, column: str) -> dict[str, Any]:
    """Return the number of ``files``, and the mean number that an equality query on a column would ``read``.

    Both are 0 for a view, which has no files, so that the test passes.

    Args:
        spark: the session.
        table: the table.
        column: the column's name from the test, in any case. With ``quote: true`` dbt puts it into backticks.

    Raises:
        ZorderError: the column has no stats.
    """
    found = open_table(spark, table)
    if _is_view(table, None if found is None else found.info, "zorder_clustered"):
        return {"files": 0, "read": 0}
    summary = existing(found, table).summary()
    name, by = column.replace("`", ""), summary.point_query_files
    sensitive = case_sensitive(spark)
    in_any_case = {fold_case(other, sensitive=sensitive): files for other, files in by.items()}
    read = by.get(name, in_any_case.get(fold_case(name, sensitive=sensitive)))
    if read is None:
        msg = (
            f"zorder_clustered: there are no stats of '{name}' in {table}, only of {', '.join(by)}."
            f"{did_you_mean(name, by)}"
        )
        raise ZorderError(msg)
    return {"files": summary.files, "read": read}


def _is_view(table: TableName, info: TableInfo | None, test: str) -> bool:
    """Return whether a test passes on a relation because it is a view, which has no files."""
    is_view = info is not None and info.is_view
    if is_view:
        _LOG.info(f"{table} is a view, which has no files to be clustered: {test} passes")
    return is_view


def no_such_node(name: str, others: list[str]) -> CompilationError:
    """Return the error for a name that no model, seed or snapshot has. It names the nearest one of ``others``."""
    return CompilationError(
        f"There is no model, seed or snapshot '{name}' in this project.{did_you_mean(name, others)} A table that "
        "is none of them is named as schema.identifier."
    )


def check_columns(model: Mapping[str, Any] | None, zorder_by: object, file_size: object) -> tuple[Sequence[str], Any]:
    """Return the columns and the file size by which ``zorder_optimize`` rewrites a table without a model.

    Args:
        model: node of the model that builds the table with ``zorder_by``; None if there is none.
        zorder_by: the columns as given.
        file_size: the file size as given.

    Raises:
        ConfigError: a model sets them; or they are not allowed.
    """
    if model is not None:
        msg = f"zorder_optimize: the model '{model['name']}' has zorder_by: leave both out, or change the model."
        raise ConfigError(msg)
    if zorder_by is None:
        msg = f"zorder_optimize: file_size is {file_size!r}, but it is only allowed together with zorder_by."
        raise ConfigError(msg)
    by = values.read("zorder_optimize: zorder_by", zorder_by, values.columns)
    return by, values.optional("zorder_optimize: file_size", file_size, values.file_size, "auto")


def check_dry_run(operation: str, dry_run: object) -> None:
    """Raise unless ``dry_run`` is a boolean, because a text such as ``'false'`` would count as true.

    Raises:
        ConfigError: ``dry_run`` is not a boolean.
    """
    if not isinstance(dry_run, bool):
        msg = f"{operation}: dry_run is {dry_run!r}, but it must be true or false."
        raise ConfigError(msg)
