"""The adapter: dbt-spark's, with the methods that our macros call. Each is thin; helpers do the work."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from threading import get_ident
from typing import TYPE_CHECKING, Any

from dbt.adapters.__about__ import version as base_version
from dbt.adapters.base import BaseRelation, available
from dbt.adapters.base.column import Column as BaseColumn
from dbt.adapters.base.impl import AdapterTrackingRelationInfo
from dbt.adapters.contracts.connection import AdapterResponse
from dbt.adapters.contracts.relation import RelationConfig
from dbt.adapters.events.logging import AdapterLogger
from dbt.adapters.spark.impl import LIST_RELATIONS_SHOW_TABLES_MACRO_NAME, SparkAdapter
from dbt_common.events.functions import fire_event
from dbt_common.events.types import Note
from dbt_common.exceptions import DbtRuntimeError
from pyspark.sql import DataFrame, SparkSession

from dbt_zorder import __version__, pruning
from dbt_zorder.adapter import operations, relations
from dbt_zorder.adapter.config import ModelSettings, ZorderConfig
from dbt_zorder.adapter.connections import ZorderConnectionManager
from dbt_zorder.adapter.messages.debug import check_up
from dbt_zorder.adapter.messages.logs import warn
from dbt_zorder.adapter.messages.progress import progress
from dbt_zorder.adapter.messages.response import ZorderResponse
from dbt_zorder.adapter.messages.spark_errors import dbt_errors, short_message
from dbt_zorder.adapter.models.batches import batch_of
from dbt_zorder.adapter.models.grants import check_grants
from dbt_zorder.adapter.models.hooks import check_hooks
from dbt_zorder.adapter.models.python_models import run_model
from dbt_zorder.adapter.models.seeds import seed_rows
from dbt_zorder.adapter.models.session_scope import SCOPES, Scope, run_aside
from dbt_zorder.adapter.models.timezone import warn_of_zone
from dbt_zorder.adapter.names import model_name, table_name
from dbt_zorder.adapter.requests import check_alias, check_reserved, kept_settings, model_request, snapshot_settings
from dbt_zorder.progress import listening
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog_entry import GLOBAL_VIEWS
from dbt_zorder.spark.columns import case_sensitive
from dbt_zorder.spark.sql import quote_name, quote_string
from dbt_zorder.tables.batch import Batch
from dbt_zorder.tables.comments import documented, set_comments
from dbt_zorder.tables.parquet.conflicts import check_absent
from dbt_zorder.tables.parquet.incremental import begin
from dbt_zorder.tables.parquet.operations.drop import drop_table, rename_stats
from dbt_zorder.tables.parquet.operations.rebuild_stats import rebuild_stats
from dbt_zorder.tables.parquet.operations.rollback import rollback
from dbt_zorder.tables.parquet.rewrite import recover, request_from_marker
from dbt_zorder.tables.parquet.snapshot import KEY_PART, SnapshotColumns, take_snapshot
from dbt_zorder.tables.registry import for_format, lakehouse_table
from dbt_zorder.tables.report import Outcome

if TYPE_CHECKING:
    import agate

_LOG = AdapterLogger("Spark")

_BY_PARTITION = {"spark.sql.sources.partitionOverwriteMode": "DYNAMIC"}


class ZorderAdapter(SparkAdapter):
    """dbt-spark's adapter plus z-ordering."""

    AdapterSpecificConfigs = ZorderConfig
    ConnectionManager = ZorderConnectionManager  # type: ignore[assignment]
    connections: ZorderConnectionManager

    # dbt itself: the run, its models and its relations

    @classmethod
    def get_adapter_run_info(cls, config: RelationConfig) -> AdapterTrackingRelationInfo:
        """Return what dbt tracks of a run; dbt would take the adapter's name from that of the class."""
        return AdapterTrackingRelationInfo(  # type: ignore[abstract]
            adapter_name="spark_zorder",
            base_adapter_version=base_version,
            adapter_version=__version__,
            model_adapter_details={**cls._get_adapter_specific_run_info(config), "adapter_type": "spark_zorder"},
        )

    @property
    def session(self) -> SparkSession:
        """The Spark session of this thread's connection."""
        return self.connections.session()

    def pre_model_hook(self, config: Mapping[str, Any]) -> Scope:
        """Begin a model: what it changes in the session from here on is undone by ``post_model_hook``."""
        super().pre_model_hook(config)
        # with spark_remote beside another method, the server is asked for nothing before a model needs it
        session = self._session_if_open()
        with self.connections.exception_handler(""):
            scope = SCOPES.enter(session)
            batch = batch_of(config)
            if session is not None and batch is not None and not batch.is_first:
                SCOPES.set_again(session, batch.model)
        return scope

    def _session_if_open(self) -> SparkSession | None:
        """Return the session that statements run in; None over other methods, and once the run was cancelled."""
        with contextlib.suppress(DbtRuntimeError):
            return getattr(self.connections.get_thread_connection().handle, "session", None)
        return None

    def post_model_hook(self, config: Mapping[str, Any], context: Scope) -> None:
        """End a model, also one that failed: drop its temporary views, and put back the settings that it changed.

        What it knew of its table's files does not count for the next model.
        """
        # a copy of the keys, as other threads compile meanwhile
        for key in [key for key in list(self._files_at_compilation()) if key[0] == get_ident()]:
            self._files_at_compilation().pop(key, None)
        try:
            with context:
                batch, session = batch_of(config), self._session_if_open()
                if session is not None and batch is not None and batch.is_first:
                    SCOPES.keep(session, batch.model)
        except Exception as exc:  # the model is built, or its own error is on its way
            warn(f"What a model changed in the session could not be undone: {exc}")
        super().post_model_hook(config, context)

    def debug_query(self) -> None:
        """Try the connection for ``dbt debug``, and over a session the writing and pruning of a small table."""
        super().debug_query()
        if self.zorder_in_session():
            with dbt_errors(ours=DbtRuntimeError):
                check_up(self.session, self.config.credentials.schema, lambda line: fire_event(Note(msg=f"  {line}")))

    def check_schema_exists(self, database: str, schema: str) -> bool:
        """Tell whether there is a schema; Spark's own catalog knows none by capital letters."""
        return super().check_schema_exists(database, schema) or super().check_schema_exists(database, schema.lower())

    @available.parse_list
    def get_missing_columns(self, from_relation: BaseRelation, to_relation: BaseRelation) -> list[BaseColumn]:
        """Return the columns that a relation lacks, without dbt's own names for the parts of a snapshot's unique key.

        dbt-spark knows the name for a key of one column alone: a snapshot in Delta Lake with a key of two got two more
        columns by its second run, and failed in its third.
        """
        missing = super().get_missing_columns(from_relation, to_relation)
        return [column for column in missing if not KEY_PART.fullmatch(column.name)]

    def list_relations_without_caching(self, schema_relation: BaseRelation) -> list[BaseRelation]:
        """Return the tables and views of a schema, without what Spark lists besides: temporary views, and our stats."""
        found = self._list_all(schema_relation)
        if self.zorder_in_session() and relations.restore_interrupted(self.session, found):
            found = self._list_all(schema_relation)
        return relations.users_own(found)

    def _list_all(self, schema_relation: BaseRelation) -> list[BaseRelation]:
        list_once = super().list_relations_without_caching
        return relations.list_all(
            schema_relation.schema, lambda: list_once(schema_relation), lambda: self._has_tables(schema_relation)
        )

    def _has_tables(self, schema_relation: BaseRelation) -> bool:
        try:
            rows = self.execute_macro(
                LIST_RELATIONS_SHOW_TABLES_MACRO_NAME, kwargs={"schema_relation": schema_relation}
            )
        except DbtRuntimeError:  # there is no such schema
            return False
        return any(row[0] for row in rows)  # a temporary view is in none

    def _get_columns_for_catalog(self, relation: BaseRelation) -> Iterable[dict[str, Any]]:
        """Return a relation's columns for dbt's catalog: with comments, and with the figures of a z-ordered table."""
        rows = list(super()._get_columns_for_catalog(relation))
        return relations.described_columns(self.session, relation, rows) if self.zorder_in_session() else rows

    # what macros ask of the session

    @available.parse(lambda *_, **__: True)
    def zorder_in_session(self) -> bool:
        """Tell whether there is a Spark session that DataFrames can be made in."""
        return self.connections.has_session()

    @available.parse(lambda *_, **__: True)
    def zorder_in_process(self) -> bool:
        """Tell whether statements, too, run in that session: what it keeps to itself they can read only then."""
        return getattr(self.connections.get_thread_connection().handle, "session", None) is not None

    @available.parse_none
    def zorder_view(self, model: Mapping[str, Any], code: str) -> BaseRelation:
        """Run a Python model, or analyse the query of an SQL model, and register its rows as a view until it ends."""
        df = run_model(self.session, model, code) if model["language"] == "python" else self._query(code)
        with self.connections.exception_handler(code):
            identifier = SCOPES.view(df, str(model["alias"]))
        return self.Relation.create(schema=GLOBAL_VIEWS, identifier=identifier, type=self.Relation.View)

    def _query(self, sql: str) -> DataFrame:
        with self.connections.exception_handler(sql):
            return self.connections.query(sql)

    @available.parse_none
    def zorder_overwrite_partitions(self, relation: BaseRelation, sql: str) -> AdapterResponse | None:
        """Run an INSERT OVERWRITE that replaces only the partitions it has rows of, and change no setting for it.

        None if that cannot be done: the setting must then be changed for all threads.
        """
        _LOG.debug(f"In a session of its own, which replaces partitions one by one:\n{sql}")
        with self.connections.exception_handler(sql):
            if not run_aside(self.session, sql, _BY_PARTITION):
                return None
            self.session.catalog.refreshTable(table_name(relation).sql)
        return AdapterResponse(_message="OK", code="OK")

    @available.parse_list
    def zorder_columns_of(self, sql: str) -> list[str]:
        """Return the names of a query's columns, which is not run."""
        with self.connections.exception_handler(sql):
            return self.session.sql(sql).columns

    @available.parse(lambda *_, **__: {})
    def zorder_documented(self, columns: Mapping[str, Mapping[str, Any]], names: list[str]) -> dict[str, str]:
        """Return the descriptions of columns, by the names that a query gives them."""
        sensitive = self.zorder_in_session() and case_sensitive(self.session)
        return documented(columns, names, sensitive=sensitive)

    @available.parse(lambda *_, **__: "")
    def zorder_quote(self, text: str) -> str:
        """Return a text as a literal of Spark's."""
        return quote_string(text)

    @available.parse_none
    def zorder_comment(
        self, relation: BaseRelation, comment: str | None, columns: Mapping[str, Mapping[str, Any]]
    ) -> None:
        """Give a table and its columns the comments of a model's properties, where they have others."""
        if self.zorder_in_session() and (comment is not None or columns):
            table = table_name(relation)
            try:
                names = self.session.table(table.sql).columns
                wanted = documented(columns, names, sensitive=case_sensitive(self.session))
                set_comments(self.session, table, comment, wanted)
            except Exception as exc:  # the rows are in: a run that failed now would add them again
                warn(f"{relation} is built, but not all of its comments could be set: {short_message(exc)}")

    # what materializations do

    @available.parse_none
    def zorder_settings(self, model: Mapping[str, Any]) -> ModelSettings | None:
        """Return a model's checked settings, None if it is to be built as dbt-spark builds it."""
        self.zorder_check_name(model)
        with dbt_errors():
            settings = ModelSettings.from_config(model_name(model), model["config"])
            if settings is not None:
                check_hooks(model)
                check_alias(model, settings)
        return settings

    @available.parse_none
    def zorder_check_name(self, model: Mapping[str, Any]) -> None:
        """Raise where the name of a model, seed or snapshot is reserved for what belongs to another one."""
        with dbt_errors():
            check_reserved(model)

    def _request(self, settings: ModelSettings, relation: BaseRelation, model: Mapping[str, Any]) -> BuildRequest:
        """Return what to build for a model, by the session's rule for names."""
        with dbt_errors():
            return model_request(settings, relation, model, sensitive=case_sensitive(self.session))

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
    def zorder_seed_rows(self, model: Mapping[str, Any], table: agate.Table) -> DataFrame:
        """Return a seed's rows as a DataFrame; a value that does not fit its column is an error here already."""
        chosen = model["config"].get("column_types") or {}
        types = [
            str(chosen.get(name, self.convert_type(table, place))) for place, name in enumerate(table.column_names)
        ]
        with self.connections.exception_handler(f"the seed {model_name(model)}"):
            return seed_rows(self.session, table, types)

    @available.parse_none
    def zorder_seed_load(self, relation: BaseRelation, rows: DataFrame) -> None:
        """Make a seed's rows the content of its table, which has its columns, partition columns last."""
        name = table_name(relation).sql
        with self.connections.exception_handler(f"INSERT OVERWRITE TABLE {name}"):
            columns = [quote_name(column) for column in self.session.table(name).columns]
            rows.select(*columns).write.insertInto(name, overwrite=True)

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
            table = for_format(self.session, request)
            now = table.begin()
            # what the model asked of its table while it was compiled, it asked of the files of then
            known = self._files_at_compilation().pop((get_ident(), str(relation)), now)
            before = known if now is not None else None
            report = table.increment(lambda: self.connections.query(sql), request, how, settings.optimize, before)
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
            rows = lakehouse_table(self.session, request).merge_source(
                df, request, Batch(on_schema_change=batch["on_schema_change"])
            )
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
            table = lakehouse_table(self.session, request)
            report = table.merge(sql, request, batch, settings.optimize, keys)
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
        with dbt_errors():
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

    @contextmanager
    def _at_work_on(self, model: Mapping[str, Any], relation: BaseRelation, sql: str) -> Iterator[None]:
        """Say how far a model is, turn the errors of its build into dbt's, and let dbt's connection see the result."""
        in_process = self.zorder_in_process()

        def check(phase: str) -> None:
            if phase in ("query", "sample", "write"):  # later ones may come when the rows are in
                _ = self.session  # raises if the run was cancelled

        with (
            dbt_errors(sql, model=model),
            listening(check),
            progress(self.session, str(model["name"])),
        ):
            if in_process:
                check_grants(self.session, model)
            yield
            if not in_process:
                self.execute(f"refresh table {relation}")  # another session may have read the version before

    # reads and operations

    @available.parse(lambda *_, **__: "")
    def zorder_scan_sql(self, relation: str, predicate: str, alias: str | None = None) -> str:
        """Return a FROM item that reads only the files of a relation that may match a predicate."""
        if not self.zorder_in_session() or not self._is_there(relation):
            # nothing can be looked up without a session, nor before a first run; the line break ends a comment that
            # the predicate may end in
            named = f" as {alias}" if alias else ""
            return f"(select * from {relation}{named} where ({predicate}\n)){named}"
        with dbt_errors():
            return pruning.scan_sql(self.session, relation, predicate, alias)

    def _is_there(self, relation: str) -> bool:
        try:
            return self.session.catalog.tableExists(relation)
        except Exception:  # no plain name: pruning says what is wrong with it
            return True

    @available.parse(lambda *_, **__: {})
    def zorder_optimize(self, relation: BaseRelation, model: Mapping[str, Any] | None, dry_run: bool) -> dict[str, Any]:
        """Build a table anew from its own rows, or report what that would do; ``text`` is the same to print."""
        with dbt_errors():
            operations.check_dry_run("zorder_optimize", dry_run)
            settings = self.zorder_settings(model) if model else None
            if settings is not None and model is not None:
                request = self._request(settings, relation, model)
            else:
                request = request_from_marker(self.session, table_name(relation))
            with progress(self.session, str(table_name(relation))):
                return operations.optimize_table(self.session, request, settings, dry_run=dry_run)

    @available.parse(lambda *_, **__: {})
    def zorder_explain(self, relation: BaseRelation, predicate: str) -> dict[str, Any]:
        """Return which files a pruned read of a relation reads, and why; ``text`` is the same as a table to print."""
        with dbt_errors():
            return operations.explain_table(self.session, table_name(relation), predicate)

    @available.parse(lambda *_, **__: 0)
    def zorder_rebuild_stats(self, relation: BaseRelation, columns: list[str] | str | None = None) -> int:
        """Collect the stats of a table as its files are now; return the number of files."""
        names = [columns] if isinstance(columns, str) else columns or []
        with dbt_errors():
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
        """Delete old versions of a table; return the names of the deleted ones, and ``text`` to print."""
        with dbt_errors():
            operations.check_dry_run("zorder_vacuum", dry_run)
            settings = kept_settings(model) if model else None
            return operations.vacuum_table(
                self.session, table_name(relation), settings, keep_versions, grace_hours, dry_run=dry_run
            )

    @available.parse(lambda *_, **__: {})
    def zorder_verify(self, relation: BaseRelation) -> dict[str, Any]:
        """Compare a table with its stats; return what does not agree, and ``text`` to print."""
        with dbt_errors():
            return operations.compare_with_stats(self.session, table_name(relation))

    @available.parse(lambda *_, **__: [])
    def zorder_rollback(self, relation: BaseRelation, version: str | None = None) -> list[str]:
        """Serve an earlier version; return the names of the one served till now and of the one from now on."""
        with dbt_errors():
            return list(rollback(self.session, table_name(relation), version))

    @available.parse(lambda *_, **__: [])
    def zorder_mismatches(self, relation: BaseRelation, predicates: list[str] | str | None, made: int) -> list[Any]:
        """Return each predicate whose pruned answer is not the full one, of given ones and ``made`` from the stats."""
        given = [predicates] if isinstance(predicates, str) else list(predicates or [])
        with dbt_errors():
            return operations.find_mismatches(self.session, table_name(relation), given, made)

    @available.parse(lambda *_, **__: {})
    def zorder_point_query_files(self, relation: BaseRelation, column: str) -> dict[str, Any]:
        """Return the number of ``files``, and of those that an equality query on a column would have ``read``."""
        with dbt_errors():
            return operations.count_point_query_files(self.session, table_name(relation), column)

    @available.parse_none
    def zorder_no_node(self, name: str, known: list[str]) -> None:
        """Raise an error that lists the names nearest to one that no model, seed or snapshot has."""
        raise operations.no_such_node(name, known)


def _build(spark: SparkSession, df: DataFrame, request: BuildRequest, *, is_first: bool = False) -> Outcome:
    """Build a table in the format that it is asked for; with ``is_first`` only where there is none at the swap."""
    guard = (lambda: check_absent(spark, request.table)) if is_first else None
    return Outcome.of_build(for_format(spark, request).build(df, request, guard))
