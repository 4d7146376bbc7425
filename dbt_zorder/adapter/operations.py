"""What users ask of z-ordered tables by ``dbt run-operation``, and what tests of them ask."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from dbt.adapters.base import BaseRelation, available
from dbt.adapters.events.logging import AdapterLogger
from dbt_common.exceptions import CompilationError
from pyspark.sql import SparkSession

from dbt_zorder import pruning
from dbt_zorder.adapter.config import ModelSettings
from dbt_zorder.adapter.messages.progress import progress
from dbt_zorder.adapter.models.hooks import check_hooks
from dbt_zorder.adapter.names import model_name, table_name
from dbt_zorder.adapter.relations import DocumentedAdapter
from dbt_zorder.adapter.requests import build_request, kept_settings
from dbt_zorder.errors import ConfigError, ZorderError, did_you_mean
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableName, describe
from dbt_zorder.spark.columns import case_sensitive, folded
from dbt_zorder.spark.plain_names import check_identifier
from dbt_zorder.stats.summary import absent, current_summary
from dbt_zorder.stats.table_state import FORMATS
from dbt_zorder.tables.lakehouse.rewrite import optimize_format
from dbt_zorder.tables.parquet.operations.rebuild_stats import rebuild_stats
from dbt_zorder.tables.parquet.operations.rollback import rollback
from dbt_zorder.tables.parquet.operations.vacuum import vacuum
from dbt_zorder.tables.parquet.operations.verify import verify_table
from dbt_zorder.tables.parquet.reserved import check_name
from dbt_zorder.tables.parquet.rewrite import optimize, request_from_marker

_LOG = AdapterLogger("Zorder")


class OperationsAdapter(DocumentedAdapter):
    """dbt-spark's adapter, with the operations on tables that are there."""

    @available.parse_none
    def zorder_settings(self, model: Mapping[str, Any]) -> ModelSettings | None:
        """Return a model's checked settings, None if it is to be built as dbt-spark builds it."""
        self.zorder_check_name(model)
        with told_of_zorder():
            settings = ModelSettings.from_config(model_name(model), model["config"])
            if settings is not None:
                check_hooks(model)
                _check_identifier(model, settings)
        return settings

    @available.parse_none
    def zorder_check_name(self, model: Mapping[str, Any]) -> None:
        """Find out whether a model, seed or snapshot has a name that is reserved for what belongs to another one."""
        try:
            check_name(TableName(str(model.get("schema")), str(model.get("alias") or model.get("name"))))
        except ZorderError as exc:
            msg = f"Model {model_name(model)}: {exc}"
            raise CompilationError(msg) from exc

    @available.parse(lambda *_, **__: {})
    def zorder_optimize(self, relation: BaseRelation, model: Mapping[str, Any] | None, dry_run: bool) -> dict[str, Any]:
        """Build a table anew from its own rows, or tell what that would do; ``text`` is the same to print."""
        with told_of_zorder():
            _check_dry_run("zorder_optimize", dry_run)
            settings = self.zorder_settings(model) if model else None
            if settings is not None and model is not None:
                request = self._request(settings, relation, model)
            else:
                request = request_from_marker(self.session, table_name(relation))
            with progress(self.session, str(table_name(relation))):
                if settings is not None and settings.file_format in FORMATS:
                    return optimize_format(self.session, request, settings.optimize, dry_run=dry_run).to_dict()
                return optimize(self.session, request, dry_run=dry_run).to_dict()

    @available.parse(lambda *_, **__: {})
    def zorder_explain(self, relation: BaseRelation, predicate: str) -> dict[str, Any]:
        """Return what a pruned read of a relation reads and why; ``text`` is the same as a table to print."""
        with told_of_zorder():
            explanation = pruning.explain(self.session, self._name_of(relation).sql, predicate)
        return {**explanation.to_dict(), "text": str(explanation)}

    @available.parse(lambda *_, **__: 0)
    def zorder_rebuild_stats(self, relation: BaseRelation, columns: list[str] | str | None = None) -> int:
        """Collect the stats of a table as its files are now; return the number of files."""
        names = [columns] if isinstance(columns, str) else columns or []
        with told_of_zorder():
            return rebuild_stats(self.session, table_name(relation), names)

    @available.parse(lambda *_, **__: {})
    def zorder_vacuum(
        self,
        relation: BaseRelation,
        model: Mapping[str, Any] | None,
        dry_run: bool,
        grace_hours: float | None,
        keep_versions: int | None,
    ) -> dict[str, Any]:
        """Delete old versions of a table; return the names of those that are gone, and ``text`` to print.

        ``refused`` says why nothing was deleted, where the version that is served is not whole.
        """
        with told_of_zorder():
            _check_dry_run("zorder_vacuum", dry_run)
            settings = kept_settings(model) if model else None
            vacuumed = vacuum(
                self.session,
                table_name(relation),
                keep_versions if keep_versions is not None else settings.keep_versions if settings else 2,
                grace_hours if grace_hours is not None else settings.grace_hours if settings else 24.0,
                settings.location_root if settings else None,
                dry_run=dry_run,
            )
        return {"deleted": list(vacuumed.deleted), "refused": vacuumed.refused, "text": str(vacuumed)}

    @available.parse(lambda *_, **__: {})
    def zorder_verify(self, relation: BaseRelation) -> dict[str, Any]:
        """Compare a table with its stats; return what does not agree, and ``text`` to print."""
        try:
            verified = verify_table(self.session, table_name(relation))
        except ZorderError as exc:  # one of many tables: the others are looked at too
            return {"findings": [str(exc)], "text": str(exc)}
        return {"findings": list(verified.findings), "text": str(verified)}

    @available.parse(lambda *_, **__: [])
    def zorder_rollback(self, relation: BaseRelation, version: str | None = None) -> list[str]:
        """Serve an earlier version; return the names of the one served till now and of the one from now on."""
        with told_of_zorder():
            return list(rollback(self.session, table_name(relation), version))

    @available.parse(lambda *_, **__: [])
    def zorder_mismatches(self, relation: BaseRelation, predicates: list[str] | str | None, made: int) -> list[Any]:
        """Return each predicate whose pruned answer is not the full one, of given ones and ``made`` from the stats."""
        given = [predicates] if isinstance(predicates, str) else list(predicates or [])
        with told_of_zorder():
            table = self._name_of(relation).sql
            return pruning.sound(self.session, table, [*given, *pruning.make_predicates(self.session, table, made)])

    @available.parse(lambda *_, **__: {})
    def zorder_point_query_files(self, relation: BaseRelation, column: str) -> dict[str, Any]:
        """Return the number of ``files``, and how many an equality query on a column would have ``read``, by the stats.

        Args:
            relation: the table.
            column: as the test names it, in any case; by ``quote: true`` dbt puts it into backticks.
        """
        if _is_view(self.session, table_name(relation)):
            _LOG.info(f"{relation} is a view, which has no files to be clustered: zorder_clustered passes")
            return {"files": 0, "read": 0}
        with told_of_zorder():
            summary = current_summary(self.session, table_name(relation))
            name, by = column.replace("`", ""), summary.point_query_files
            sensitive = case_sensitive(self.session)
            in_any_case = {folded(known, sensitive=sensitive): files for known, files in by.items()}
            read = by.get(name, in_any_case.get(folded(name, sensitive=sensitive)))
            if read is None:
                msg = (
                    f"zorder_clustered: there are no stats of '{name}' in {table_name(relation)}, only of "
                    f"{', '.join(by)}.{did_you_mean(name, by)}"
                )
                raise ZorderError(msg)
        return {"files": summary.files, "read": read}

    @available.parse_none
    def zorder_no_node(self, name: str, known: list[str]) -> None:
        """Say that no model, seed or snapshot has a name, and what those that are there are called.

        Raises:
            CompilationError: always.
        """
        msg = (
            f"There is no model, seed or snapshot '{name}' in this project.{did_you_mean(name, known)} A table that "
            "is none of them is named as schema.identifier."
        )
        raise CompilationError(msg)

    def _request(self, settings: ModelSettings, relation: BaseRelation, model: Mapping[str, Any]) -> BuildRequest:
        """Return what to build for a model, by the session's rule for names."""
        try:
            return build_request(settings, relation, model, sensitive=case_sensitive(self.session))
        except ConfigError as exc:
            msg = f"Model {model_name(model)}: {exc}"
            raise CompilationError(msg) from exc

    def _name_of(self, relation: BaseRelation) -> TableName:
        """Return the name of a relation that is there.

        Raises:
            ZorderError: it is not.
        """
        name = table_name(relation)
        if describe(self.session, name) is None:
            raise ZorderError(absent(name))
        return name


def _is_view(spark: SparkSession, table: TableName) -> bool:
    """Tell whether a name is that of a view, as of a clone, or of a model on a target that has no need of tables."""
    info = describe(spark, table)
    return info is not None and info.is_view


def _check_identifier(model: Mapping[str, Any], settings: ModelSettings) -> None:
    """Find out whether a model's table can have its name, before a hook runs.

    Raises:
        ConfigError: it cannot.
    """
    if settings.file_format == "iceberg":  # whose catalogs have rules of their own
        return
    try:
        check_identifier(str(model["alias"]))
    except ConfigError as exc:
        msg = f"Model {model_name(model)}: {exc} Set it as the model's alias."
        raise ConfigError(msg) from exc


def _check_dry_run(operation: str, dry_run: object) -> None:
    if not isinstance(dry_run, bool):
        msg = f"{operation}: dry_run is {dry_run!r}, but it must be true or false."
        raise ConfigError(msg)


@contextmanager
def told_of_zorder() -> Iterator[None]:
    """Turn our errors into dbt's, which it shows without a stack trace."""
    try:
        yield
    except ZorderError as exc:
        raise CompilationError(str(exc)) from exc
