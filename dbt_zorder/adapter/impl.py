"""The adapter: dbt-spark's, with the methods that our macros call. Each is thin; the work is in table and pruning."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import get_ident
from typing import Any

from dbt.adapters.__about__ import version as base_version
from dbt.adapters.base import BaseRelation, available
from dbt.adapters.base.impl import AdapterTrackingRelationInfo
from dbt.adapters.contracts.relation import RelationConfig
from dbt_common.exceptions import CompilationError, DbtRuntimeError
from pyspark.sql import DataFrame, SparkSession

from dbt_zorder import __version__, pruning
from dbt_zorder.adapter.config import ModelSettings, ZorderConfig
from dbt_zorder.adapter.messages.progress import progress
from dbt_zorder.adapter.messages.response import ZorderResponse
from dbt_zorder.adapter.models.grants import check_grants
from dbt_zorder.adapter.models.session_scope import SCOPES, Scope
from dbt_zorder.adapter.models.timezone import warn_of_zone
from dbt_zorder.adapter.names import model_name, table_name
from dbt_zorder.adapter.operations import OperationsAdapter, told_of_zorder
from dbt_zorder.adapter.requests import snapshot_settings
from dbt_zorder.errors import SchemaChangeError, ZorderError
from dbt_zorder.progress import listening
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog_entry import GLOBAL_VIEWS
from dbt_zorder.stats.table_state import FORMATS
from dbt_zorder.tables.lakehouse.build import build_format
from dbt_zorder.tables.lakehouse.incremental import increment_format, merge_format
from dbt_zorder.tables.lakehouse.merge_source import merge_source
from dbt_zorder.tables.parquet.batch import Batch
from dbt_zorder.tables.parquet.build import build
from dbt_zorder.tables.parquet.conflicts import check_absent
from dbt_zorder.tables.parquet.incremental import begin, increment
from dbt_zorder.tables.parquet.operations.drop import drop_table, rename_stats
from dbt_zorder.tables.parquet.rewrite import recover
from dbt_zorder.tables.parquet.snapshot import SnapshotColumns, take_snapshot
from dbt_zorder.tables.report import Outcome


class ZorderAdapter(OperationsAdapter):
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
    def zorder_build(
        self,
        settings: ModelSettings,
        relation: BaseRelation,
        sql: str,
        model: Mapping[str, Any],
        is_first: bool = False,
    ) -> ZorderResponse:
        """Build a model into a new version of its table and swap it in; return what ``dbt run`` reports.

        With ``is_first`` there must be no table yet, because an incremental model is to begin.
        """
        request = self._request(settings, relation, model)
        with self._at_work_on(model, relation, sql):
            if is_first:
                check_absent(self.session, request.table)
            return ZorderResponse.of(_build(self.session, self.connections.query(sql), request, is_first=is_first))

    @available.parse_none
    def zorder_remember(self, relation: BaseRelation) -> None:
        """Let dbt's cache know at a model's end that what was a view is a table; till then it is a first run.

        dbt itself adds nothing over what it knows by the name: each further microbatch would be the first again.
        """
        self.cache_dropped(relation)
        # as dbt marks what a run has made, which it then finds whatever the case of its name
        self.cache_added(relation.incorporate(dbt_created=True))  # type: ignore[no-untyped-call]

    @available.parse_none
    def zorder_seed_build(
        self,
        settings: ModelSettings,
        relation: BaseRelation,
        rows: DataFrame,
        model: Mapping[str, Any],
    ) -> ZorderResponse:
        """Build a seed's rows into a new version of its table and swap it in."""
        request = self._request(settings, relation, model)
        with self._at_work_on(model, relation, f"the seed {model_name(model)}"):
            return ZorderResponse.of(_build(self.session, rows, request))

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
        request = self._request(settings, relation, model)
        with self._at_work_on(model, relation, sql):
            how = Batch(batch["overwrite"], batch["on_schema_change"], settings.optimize != "never")
            if settings.file_format in FORMATS:
                report = increment_format(
                    self.session, lambda: self.connections.query(sql), request, how, settings.optimize
                )
                return ZorderResponse.of(Outcome.of_increment(report))
            now = begin(self.session, request.table)
            # what the model asked of its table while it was compiled, it asked of the files of then
            known = self._files_at_compilation().pop((get_ident(), str(relation)), now)
            before = known if now is not None else None
            report = increment(self.session, self.connections.query(sql), request, how, before)
        return ZorderResponse.of(Outcome.of_increment(report))

    @available.parse_none
    def zorder_warn_of_zone(self, model: str) -> None:
        """Say so where dbt's batches, which are of UTC, may hold rows of two partitions of the session's zone."""
        if self.zorder_in_session():
            warn_of_zone(self.session, model)

    @available.parse_none
    def zorder_merge_source(
        self,
        settings: ModelSettings,
        relation: BaseRelation,
        source: BaseRelation,
        model: Mapping[str, Any],
        batch: Mapping[str, Any],
    ) -> BaseRelation:
        """Return the view of a MERGE's rows, in the structs that its table has by ``on_schema_change``."""
        request = self._request(settings, relation, model)
        with self._at_work_on(model, relation, f"the structs of {relation}"):
            df = self.session.table(str(source))
            rows = merge_source(self.session, df, request, Batch(on_schema_change=batch["on_schema_change"]))
            if rows is df:
                return source
            identifier = SCOPES.view(rows, str(model["alias"]))
        return self.Relation.create(schema=GLOBAL_VIEWS, identifier=identifier, type=self.Relation.View)

    @available.parse_none
    def zorder_merge(
        self, settings: ModelSettings, relation: BaseRelation, sql: str, model: Mapping[str, Any]
    ) -> ZorderResponse:
        """Run a model's MERGE into a table of Delta or Iceberg, and look at its layout after it."""
        request = self._request(settings, relation, model)
        with self._at_work_on(model, relation, sql):
            batch = Batch(may_rewrite=settings.optimize != "never")
            given = model["config"].get("unique_key") or []
            keys = [given] if isinstance(given, str) else given
            report = merge_format(self.session, sql, request, batch, settings.optimize, keys)
            return ZorderResponse.of(Outcome.of_increment(report))

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
            first = None if exists else self.connections.query(sql)
            by = settings or snapshot_settings(model, self.connections.query(sql) if first is None else first, columns)
            request = self._request(by, relation, model)
            if first is not None:
                check_absent(self.session, request.table)
                return ZorderResponse.of(_build(self.session, first, request, is_first=True))
            current = model["config"].get("dbt_valid_to_current")
            names = SnapshotColumns(columns["dbt_scd_id"], columns["dbt_valid_to"], current)
            taken = take_snapshot(self.session, sql, request, names)
            return ZorderResponse.of(None if taken is None else Outcome.of_build(taken))

    @available.parse_none
    def zorder_check_absent(self, relation: BaseRelation) -> None:
        """Raise where there is a table that a first run of an incremental model without ``zorder_by`` would replace."""
        with told_of_zorder():
            check_absent(self.session, table_name(relation))

    @available.parse_none
    def zorder_begin(self, relation: BaseRelation) -> None:
        """Complete the batches that a failed run has left in a table's journal, and remember the table's files.

        Files that another run adds after this make the run that asked give up, rather than add the same rows again.
        """
        if self.zorder_in_session():
            with self.connections.exception_handler(f"recover {relation}"):
                files = begin(self.session, table_name(relation))
            if files is not None:
                # the first of a model's run: a hook that asks again comes after the query was compiled
                self._files_at_compilation().setdefault((get_ident(), str(relation)), files)

    @available.parse_none
    def zorder_files(self, relation: BaseRelation) -> Mapping[str, int] | None:
        """Return the files of a table that a batch is for; None if it is not one of ours."""
        with self.connections.exception_handler(f"list {relation}"):
            return begin(self.session, table_name(relation))

    @available.parse_none
    def zorder_after_hooks(self, relation: BaseRelation, before: Mapping[str, int]) -> None:
        """Let files that a model's own hooks have added since ``before`` not count as those of another run."""
        key = get_ident(), str(relation)
        if self._files_at_compilation().get(key) == before:
            after = self.zorder_files(relation)
            if after is not None:
                self._files_at_compilation()[key] = after

    @available.parse_none
    def zorder_recover(self, relation: BaseRelation) -> None:
        """Complete the batches that a failed run has left, for a model that names no ``zorder_by`` any more.

        A session that no such model needs is not opened for it.
        """
        session = getattr(self.connections.get_thread_connection().handle, "session", None)
        if session is not None:
            with self.connections.exception_handler(f"recover {relation}"):
                recover(session, table_name(relation))

    def post_model_hook(self, config: Mapping[str, Any], context: Scope) -> None:
        """End a model, also one that failed: what it knew of its table's files is not what the next one knows."""
        # a copy of the keys, as other threads compile meanwhile
        for key in [key for key in list(self._files_at_compilation()) if key[0] == get_ident()]:
            self._files_at_compilation().pop(key, None)
        super().post_model_hook(config, context)

    def _files_at_compilation(self) -> dict[tuple[int, str], Mapping[str, int]]:
        """Return the files of each table that a model asked ``is_incremental()`` about, by its thread and relation."""
        found: dict[tuple[int, str], Mapping[str, int]] = self.__dict__.setdefault("_zorder_files", {})
        return found

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
            named = f" as {alias}" if alias else ""
            return f"(select * from {relation}{named} where ({predicate}\n)){named}"
        with told_of_zorder():
            return pruning.scan_sql(self.session, relation, predicate, alias)

    @contextmanager
    def _at_work_on(self, model: Mapping[str, Any], relation: BaseRelation, sql: str) -> Iterator[None]:
        """Say how far a model is, turn the errors of its build into dbt's, and let dbt's connection see the result."""
        in_process = self.zorder_in_process()

        def check(phase: str) -> None:
            if phase in ("query", "sample", "write"):  # later ones may come when the rows are in
                _ = self.session  # raises if the run was cancelled

        with (
            self.connections.exception_handler(sql),
            _told_of(model),
            listening(check),
            progress(self.session, str(model["name"])),
        ):
            if in_process:
                check_grants(self.session, model)
            yield
            if not in_process:
                self.execute(f"refresh table {relation}")  # another session may have read the version before

    def _is_there(self, relation: str) -> bool:
        try:
            return self.session.catalog.tableExists(relation)
        except Exception:  # no plain name: pruning says what is wrong with it
            return True


def _build(spark: SparkSession, df: DataFrame, request: BuildRequest, *, is_first: bool = False) -> Outcome:
    """Build a table in the format that it is asked for; with ``is_first`` only where there is none at the swap."""
    guard = (lambda: check_absent(spark, request.table)) if is_first else None
    if request.file_format in FORMATS:
        return Outcome.of_build(build_format(spark, df, request, guard=guard))
    return Outcome.of_build(build(spark, df, request, guard))


@contextmanager
def _told_of(model: Mapping[str, Any]) -> Iterator[None]:
    """Name the model in our errors, and turn them into dbt's."""
    try:
        yield
    except ZorderError as exc:
        msg = f"Model {model_name(model)}: {exc}"
        raise (CompilationError if isinstance(exc, SchemaChangeError) else DbtRuntimeError)(msg) from exc
