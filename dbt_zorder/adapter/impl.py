"""The adapter: dbt-spark's, with the methods that our macros call. Each is thin; the work is in table and pruning."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from dbt.adapters.__about__ import version as base_version
from dbt.adapters.base import BaseRelation, available
from dbt.adapters.base.impl import AdapterTrackingRelationInfo
from dbt.adapters.contracts.relation import RelationConfig
from dbt_common.exceptions import CompilationError, DbtRuntimeError
from pyspark.sql import DataFrame

from dbt_zorder import __version__, pruning
from dbt_zorder.adapter.config import ModelSettings, ZorderConfig
from dbt_zorder.adapter.documented import DocumentedAdapter
from dbt_zorder.adapter.names import model_name, table_name
from dbt_zorder.adapter.progress import progress
from dbt_zorder.adapter.requests import build_request, snapshot_settings
from dbt_zorder.adapter.response import ZorderResponse
from dbt_zorder.errors import SchemaChangeError, ZorderError
from dbt_zorder.table.build import build
from dbt_zorder.table.incremental import Batch, begin, increment
from dbt_zorder.table.optimize import optimize, request_from_marker
from dbt_zorder.table.remove import drop_table, rename_stats
from dbt_zorder.table.restat import rebuild_stats
from dbt_zorder.table.rollback import rollback
from dbt_zorder.table.snapshot import SnapshotColumns, take_snapshot
from dbt_zorder.table.summary import current_summary
from dbt_zorder.table.vacuum import vacuum
from dbt_zorder.table.verify import verify_table


class ZorderAdapter(DocumentedAdapter):
    """dbt-spark's adapter plus z-ordering."""

    AdapterSpecificConfigs = ZorderConfig

    @classmethod
    def get_adapter_run_info(cls, config: RelationConfig) -> AdapterTrackingRelationInfo:
        """Return what dbt tracks of a run; dbt would take the adapter's name from that of the class."""
        return AdapterTrackingRelationInfo(  # type: ignore[abstract]
            adapter_name="spark_zorder",
            base_adapter_version=base_version,
            adapter_version=__version__,
            model_adapter_details={**cls._get_adapter_specific_run_info(config), "adapter_type": "spark_zorder"},
        )

    @available.parse_none
    def zorder_settings(self, model: Mapping[str, Any]) -> ModelSettings | None:
        """Return a model's checked settings, None if it is to be built as dbt-spark builds it."""
        with _told():
            return ModelSettings.from_config(model_name(model), model["config"])

    @available.parse_none
    def zorder_build(
        self,
        settings: ModelSettings,
        relation: BaseRelation,
        sql: str,
        model: Mapping[str, Any],
    ) -> ZorderResponse:
        """Build a model into a new version of its table and swap it in; return what ``dbt run`` reports."""
        request = build_request(settings, relation, model)
        with self._at_work_on(model, relation, sql):
            return ZorderResponse.of(build(self.session, self.session.sql(sql), request))

    @available.parse_none
    def zorder_seed_build(
        self,
        settings: ModelSettings,
        relation: BaseRelation,
        rows: DataFrame,
        model: Mapping[str, Any],
    ) -> ZorderResponse:
        """Build a seed's rows into a new version of its table and swap it in."""
        request = build_request(settings, relation, model)
        with self._at_work_on(model, relation, f"the seed {model_name(model)}"):
            return ZorderResponse.of(build(self.session, rows, request))

    @available.parse_none
    def zorder_increment(
        self,
        settings: ModelSettings,
        relation: BaseRelation,
        sql: str,
        model: Mapping[str, Any],
        batch: Mapping[str, Any],
    ) -> ZorderResponse:
        """Add a model's rows to its table; ``batch`` holds ``overwrite`` and ``on_schema_change``."""
        request = build_request(settings, relation, model)
        with self._at_work_on(model, relation, sql):
            now = begin(self.session, request.table)
            # what the model asked of its table while it was compiled, it asked of the files of then
            before = self._files_at_compilation().pop(str(relation), now) if now is not None else None
            how = Batch(batch["overwrite"], batch["on_schema_change"], settings.optimize == "auto")
            report = increment(self.session, self.session.sql(sql), request, how, before)
        return ZorderResponse.of_increment(report)

    @available.parse_none
    def zorder_snapshot(
        self,
        settings: ModelSettings | None,
        relation: BaseRelation,
        sql: str,
        model: Mapping[str, Any],
        columns: Mapping[str, str],
        exists: bool,
    ) -> ZorderResponse:
        """Build a snapshot's first version from its query, or the next one from the query of its changes."""
        with self._at_work_on(model, relation, sql):
            by = settings or snapshot_settings(model, self.session.sql(sql), columns)
            request = build_request(by, relation, model)
            if not exists:
                return ZorderResponse.of(build(self.session, self.session.sql(sql), request))
            current = model["config"].get("dbt_valid_to_current")
            names = SnapshotColumns(columns["dbt_scd_id"], columns["dbt_valid_to"], current)
            return ZorderResponse.of_snapshot(take_snapshot(self.session, sql, request, names))

    @available.parse_none
    def zorder_begin(self, relation: BaseRelation) -> None:
        """Complete the batches that a failed run has left in a table's journal, and remember the table's files.

        Files that another run adds after this make the run that asked give up, rather than add the same rows again.
        """
        if self.zorder_in_session():
            with self.connections.exception_handler(f"recover {relation}"):
                files = begin(self.session, table_name(relation))
            if files is not None:
                self._files_at_compilation()[str(relation)] = files

    def _files_at_compilation(self) -> dict[str, Mapping[str, int]]:
        """Return the files of each table that a model asked ``is_incremental()`` about, by relation."""
        found: dict[str, Mapping[str, int]] = self.__dict__.setdefault("_zorder_files", {})
        return found

    @available.parse(lambda *_, **__: {})
    def zorder_optimize(self, relation: BaseRelation, model: Mapping[str, Any] | None, dry_run: bool) -> dict[str, Any]:
        """Build a table anew from its own rows, or tell what that would do; ``text`` is the same to print."""
        with _told():
            settings = self.zorder_settings(model) if model else None
            if settings is not None and model is not None:
                request = build_request(settings, relation, model)
            else:
                request = request_from_marker(self.session, table_name(relation))
            with progress(self.session, str(table_name(relation))):
                return optimize(self.session, request, dry_run=dry_run).to_dict()

    @available.parse(lambda *_, **__: False)
    def zorder_drop(self, relation: BaseRelation) -> bool:
        """Drop a table of ours with its stats and versions; False if it is none of ours."""
        return self.zorder_in_session() and drop_table(self.session, table_name(relation))

    @available.parse_none
    def zorder_rename_stats(self, old: BaseRelation, new: BaseRelation) -> None:
        """Let the stats relation follow a renamed table."""
        if self.zorder_in_session():
            rename_stats(self.session, table_name(old), table_name(new))

    @available.parse(lambda *_, **__: "")
    def zorder_scan_sql(self, relation: str, predicate: str, alias: str | None = None) -> str:
        """Return a FROM item that reads only the files of a relation that may match a predicate."""
        if not self.zorder_in_session() or not self._is_there(relation):
            # nothing can be looked up without a session, nor before a first run; the line break ends a comment that
            # the predicate may end in
            return f"(select * from {relation} where ({predicate}\n)){f' as {alias}' if alias else ''}"
        with _told():
            return pruning.scan_sql(self.session, relation, predicate, alias)

    @available.parse(lambda *_, **__: {})
    def zorder_explain(self, relation: BaseRelation, predicate: str) -> dict[str, Any]:
        """Return what a pruned read of a relation reads and why; ``text`` is the same as a table to print."""
        with _told():
            explanation = pruning.explain(self.session, table_name(relation).sql, predicate)
        return {**explanation.to_dict(), "text": str(explanation)}

    @available.parse(lambda *_, **__: 0)
    def zorder_rebuild_stats(self, relation: BaseRelation, columns: list[str] | str | None = None) -> int:
        """Collect the stats of a table as its files are now; return the number of files."""
        names = [columns] if isinstance(columns, str) else columns or []
        with _told():
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
        """Delete old versions of a table; return the names of those that are gone, and ``text`` to print."""
        with _told():
            if not isinstance(dry_run, bool):
                msg = f"zorder_vacuum: dry_run is {dry_run!r}, but it must be true or false."
                raise ZorderError(msg)
            settings = self.zorder_settings(model) if model else None
            vacuumed = vacuum(
                self.session,
                table_name(relation),
                keep_versions if keep_versions is not None else settings.keep_versions if settings else 2,
                grace_hours if grace_hours is not None else settings.grace_hours if settings else 24.0,
                settings.location_root if settings else None,
                dry_run=dry_run,
            )
        return {"deleted": list(vacuumed.deleted), "text": str(vacuumed)}

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
        with _told():
            return list(rollback(self.session, table_name(relation), version))

    @available.parse(lambda *_, **__: [])
    def zorder_mismatches(self, relation: BaseRelation, predicates: list[str] | str | None, made: int) -> list[Any]:
        """Return each predicate whose pruned answer is not the full one, of given ones and ``made`` from the stats."""
        table = table_name(relation).sql
        given = [predicates] if isinstance(predicates, str) else list(predicates or [])
        with _told():
            return pruning.sound(self.session, table, [*given, *pruning.make_predicates(self.session, table, made)])

    @available.parse(lambda *_, **__: {})
    def zorder_point_query_files(self, relation: BaseRelation) -> dict[str, Any]:
        """Return the number of files, and by column how many of them an equality query reads, from the stats."""
        with _told():
            summary = current_summary(self.session, table_name(relation))
        return {"files": summary.files, "columns": dict(summary.point_query_files)}

    @contextmanager
    def _at_work_on(self, model: Mapping[str, Any], relation: BaseRelation, sql: str) -> Iterator[None]:
        """Say how far a model is, turn the errors of its build into dbt's, and let dbt's connection see the result."""
        with (
            self.connections.exception_handler(sql),
            _told_of(model),
            progress(self.session, str(model["name"])),
        ):
            yield
            if getattr(self.connections.get_thread_connection().handle, "session", None) is None:
                self.execute(f"refresh table {relation}")  # another session may have read the version before

    def _is_there(self, relation: str) -> bool:
        try:
            return self.session.catalog.tableExists(relation)
        except Exception:  # no plain name: pruning says what is wrong with it
            return True


@contextmanager
def _told() -> Iterator[None]:
    """Turn our errors into dbt's, which it shows without a stack trace."""
    try:
        yield
    except ZorderError as exc:
        raise CompilationError(str(exc)) from exc


@contextmanager
def _told_of(model: Mapping[str, Any]) -> Iterator[None]:
    """Name the model in our errors, and turn them into dbt's."""
    try:
        yield
    except ZorderError as exc:
        msg = f"Model {model_name(model)}: {exc}"
        raise (CompilationError if isinstance(exc, SchemaChangeError) else DbtRuntimeError)(msg) from exc
