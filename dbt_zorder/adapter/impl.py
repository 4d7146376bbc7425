"""Adapter class that extends dbt-spark's with the methods that the macros call. Helper modules do the work."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from multiprocessing.context import SpawnContext
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
from dbt_zorder.adapter import relations
from dbt_zorder.adapter.config import ModelSettings, ZorderConfig
from dbt_zorder.adapter.connections import ZorderConnectionManager
from dbt_zorder.adapter.messages.debug import check_session
from dbt_zorder.adapter.messages.logs import warn
from dbt_zorder.adapter.messages.progress import progress
from dbt_zorder.adapter.messages.response import ZorderResponse
from dbt_zorder.adapter.messages.spark_errors import dbt_errors, short_message
from dbt_zorder.adapter.models.compiled_files import CompiledFiles
from dbt_zorder.adapter.models.grants import check_grants
from dbt_zorder.adapter.models.microbatches import batch_of, warn_unless_utc
from dbt_zorder.adapter.models.python_models import run_model
from dbt_zorder.adapter.models.seeds import seed_rows
from dbt_zorder.adapter.models.session_scope import MODEL_SCOPES, ModelScope, run_in_sibling_session
from dbt_zorder.adapter.names import model_name, table_name
from dbt_zorder.adapter.operations import Operations
from dbt_zorder.adapter.readers import find_readers
from dbt_zorder.adapter.requests import (
    check_reserved,
    checked_settings,
    merge_settings,
    merges,
    model_request,
    snapshot_settings,
)
from dbt_zorder.progress import report_phases_to
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog_entry import GLOBAL_VIEWS
from dbt_zorder.spark.columns import case_sensitive
from dbt_zorder.spark.sql import quote_name, quote_string
from dbt_zorder.tables.batch import Batch
from dbt_zorder.tables.comments import documented, set_comments
from dbt_zorder.tables.parquet.conflicts import check_absent
from dbt_zorder.tables.parquet.incremental import begin
from dbt_zorder.tables.parquet.operations.drop import drop_table, rename_stats
from dbt_zorder.tables.parquet.rewrite import recover
from dbt_zorder.tables.parquet.snapshot import KEY_PART, SnapshotColumns, take_snapshot
from dbt_zorder.tables.registry import for_format, lakehouse_table
from dbt_zorder.tables.report import Outcome

if TYPE_CHECKING:
    import agate

_LOG = AdapterLogger("Spark")

_BY_PARTITION = {"spark.sql.sources.partitionOverwriteMode": "DYNAMIC"}


class ZorderAdapter(SparkAdapter):
    """dbt-spark's adapter with z-ordering."""

    AdapterSpecificConfigs = ZorderConfig
    ConnectionManager = ZorderConnectionManager  # type: ignore[assignment]
    connections: ZorderConnectionManager

    def __init__(self, config: Any, mp_context: SpawnContext) -> None:
        """Return the adapter of one invocation of dbt."""
        super().__init__(config, mp_context)
        self._compiled_files = CompiledFiles()

    # methods that dbt itself calls: runs, models and relations

    @classmethod
    def get_adapter_run_info(cls, config: RelationConfig) -> AdapterTrackingRelationInfo:
        """Return the adapter's data for dbt's tracking. dbt would derive the adapter's name from the class name."""
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

    def pre_model_hook(self, config: Mapping[str, Any]) -> ModelScope:
        """Begin a model. ``post_model_hook`` undoes the changes that it makes to the session from here on."""
        super().pre_model_hook(config)
        # with spark_remote beside another method, nothing calls the server before a model needs it
        session = self._session_if_open()
        with self.connections.exception_handler(""):
            scope = MODEL_SCOPES.enter(session)
            batch = batch_of(config)
            if session is not None and batch is not None and not batch.is_first:
                MODEL_SCOPES.apply_saved(session, batch.model)
        return scope

    def _session_if_open(self) -> SparkSession | None:
        """Return the session that statements run in. None for other methods, and after the run was cancelled."""
        with contextlib.suppress(DbtRuntimeError):
            return self._statement_session()
        return None

    def _statement_session(self) -> SparkSession | None:
        """Return the session that this thread's statements run in. None for other methods."""
        session: SparkSession | None = getattr(self.connections.get_thread_connection().handle, "session", None)
        return session

    def post_model_hook(self, config: Mapping[str, Any], context: ModelScope) -> None:
        """End a model, also after a failure: drop its temporary views, and restore the settings that it changed.

        Forget the file lists that it read at compilation, because they do not apply to the next model.
        """
        self._compiled_files.forget()
        try:
            with context:
                batch, session = batch_of(config), self._session_if_open()
                if session is not None and batch is not None and batch.is_first:
                    MODEL_SCOPES.save_settings(session, batch.model)
        except Exception as exc:  # the model is built, or its own error is already raised
            warn(f"What a model changed in the session could not be undone: {exc}")
        super().post_model_hook(config, context)

    def debug_query(self) -> None:
        """Test the connection for ``dbt debug``. With a session, also write a small table and read it with pruning."""
        super().debug_query()
        if self.zorder_in_session():
            with dbt_errors(ours=DbtRuntimeError):
                check_session(
                    self.session, self.config.credentials.schema, lambda line: fire_event(Note(msg=f"  {line}"))
                )

    def check_schema_exists(self, database: str, schema: str) -> bool:
        """Return whether a schema exists, also by its name in lower case, as Spark's own catalog stores it."""
        return super().check_schema_exists(database, schema) or super().check_schema_exists(database, schema.lower())

    @available.parse_list
    def get_missing_columns(self, from_relation: BaseRelation, to_relation: BaseRelation) -> list[BaseColumn]:
        """Return the columns that a relation lacks, without dbt's own columns for the parts of a snapshot's unique key.

        dbt-spark excludes only the column for a key of one part. A Delta Lake snapshot with a two-part key gained two
        columns in its second run, and failed in its third.
        """
        missing = super().get_missing_columns(from_relation, to_relation)
        return [column for column in missing if not KEY_PART.fullmatch(column.name)]

    def list_relations_without_caching(self, schema_relation: BaseRelation) -> list[BaseRelation]:
        """Return the tables and views of a schema, without the temporary views and stats tables that Spark also lists.

        Restore tables that an interrupted swap has moved away.
        """
        found = self._list_all(schema_relation)
        if self.zorder_in_session() and relations.restore_interrupted(self.session, found):
            found = self._list_all(schema_relation)
        return relations.without_internal(found)

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
        except DbtRuntimeError:  # the schema does not exist
            return False
        return any(row[0] for row in rows)  # a temporary view has no schema

    def _get_columns_for_catalog(self, relation: BaseRelation) -> Iterable[dict[str, Any]]:
        """Return a relation's columns for dbt's catalog, with comments, and with the stats of a z-ordered table."""
        rows = list(super()._get_columns_for_catalog(relation))
        return relations.described_columns(self.session, relation, rows) if self.zorder_in_session() else rows

    # queries about the session, for macros

    @available.parse(lambda *_, **__: True)
    def zorder_in_session(self) -> bool:
        """Return whether there is a Spark session that can create DataFrames."""
        return self.connections.has_session()

    @available.parse(lambda *_, **__: True)
    def zorder_in_process(self) -> bool:
        """Return whether statements run in that session too. Only then can they read its temporary views."""
        return self._statement_session() is not None

    @available.parse(lambda *_, **__: True)
    def zorder_takes_rows(self) -> bool:
        """Return whether that session takes rows of this process as data, and not as the text of a statement."""
        return self.connections.has_server()

    @available.parse_none
    def zorder_view(self, model: Mapping[str, Any], code: str) -> BaseRelation:
        """Register a model's rows as a view until the model ends. Run a Python model, but only analyze an SQL query."""
        if model["language"] == "python":
            self.connections.require_server("Python models need")
            df = run_model(self.session, model, code)
        else:
            df = self._query(code)
        with self.connections.exception_handler(code):
            identifier = MODEL_SCOPES.create_view(df, str(model["alias"]))
        return self.Relation.create(schema=GLOBAL_VIEWS, identifier=identifier, type=self.Relation.View)

    def _query(self, sql: str) -> DataFrame:
        with self.connections.exception_handler(sql):
            return self.connections.query(sql)

    @available.parse_none
    def zorder_overwrite_partitions(self, relation: BaseRelation, sql: str) -> AdapterResponse | None:
        """Run an INSERT OVERWRITE that replaces only the partitions in its rows, in a sibling session.

        The sibling session changes no setting for other threads. Return None if there is no such session. The setting
        must then change for all threads.
        """
        _LOG.debug(f"In a session of its own, which replaces partitions one by one:\n{sql}")
        with self.connections.exception_handler(sql):
            if not run_in_sibling_session(self.session, sql, _BY_PARTITION):
                return None
            self.session.catalog.refreshTable(table_name(relation).sql)
        return AdapterResponse(_message="OK", code="OK")

    @available.parse_list
    def zorder_columns_of(self, sql: str) -> list[str]:
        """Return the column names of a query without running it."""
        with self.connections.exception_handler(sql):
            return self.session.sql(sql).columns

    @available.parse(lambda *_, **__: {})
    def zorder_documented(self, columns: Mapping[str, Mapping[str, Any]], names: list[str]) -> dict[str, str]:
        """Return the descriptions of columns by their names in a query."""
        sensitive = self.zorder_in_session() and case_sensitive(self.session)
        return documented(columns, names, sensitive=sensitive)

    @available.parse(lambda *_, **__: "")
    def zorder_quote(self, text: str) -> str:
        """Return a text as a Spark SQL literal."""
        return quote_string(text)

    @available.parse_none
    def zorder_comment(
        self, relation: BaseRelation, comment: str | None, columns: Mapping[str, Mapping[str, Any]]
    ) -> None:
        """Set the comments of a table and its columns to those of the model's properties, where they differ."""
        if self.zorder_in_session() and (comment is not None or columns):
            table = table_name(relation)
            try:
                names = self.session.table(table.sql).columns
                wanted = documented(columns, names, sensitive=case_sensitive(self.session))
                set_comments(self.session, table, comment, wanted)
            except Exception as exc:  # the rows are written, and after a failure the next run would add them again
                warn(f"{relation} is built, but not all of its comments could be set: {short_message(exc)}")

    # steps of the materializations

    @available.parse_none
    def zorder_settings(self, model: Mapping[str, Any]) -> ModelSettings | None:
        """Return a model's checked settings, or None if dbt-spark's materialization builds it."""
        with dbt_errors():
            settings = checked_settings(model)
            if settings is not None and merges(model):
                self.connections.require_server(
                    f"Model {model_name(model)}: the strategies merge and delete+insert need"
                )
            return settings

    @available.parse_none
    def zorder_check_name(self, model: Mapping[str, Any]) -> None:
        """Raise if the name of a model, seed or snapshot is reserved for a relation that belongs to another table."""
        with dbt_errors():
            check_reserved(model)

    def _request(self, settings: ModelSettings, relation: BaseRelation, model: Mapping[str, Any]) -> BuildRequest:
        """Return the build request of a model, by the session's rule for upper and lower case in names."""
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
        """Build a model into a new version of its table, swap it in, and return the response for ``dbt run``.

        With ``is_first``, raise if the table exists, because an incremental model's first run must not replace it.
        """
        request = self._request(settings, relation, model)
        with self._build_context(model, relation, sql):
            if is_first:
                check_absent(self.session, request.table)
            return ZorderResponse.of(_build(self.session, self.connections.query(sql), request, is_first=is_first))

    @available.parse_none
    def zorder_remember(self, relation: BaseRelation) -> None:
        """Update dbt's cache at a model's end, when a table has replaced a view. Until then the run is a first run.

        dbt itself does not replace a cached relation of the same name. Each further microbatch would be a first run.
        """
        self.cache_dropped(relation)
        # dbt marks relations created by a run, and then finds them in any case of their names
        self.cache_added(relation.incorporate(dbt_created=True))  # type: ignore[no-untyped-call]

    @available.parse_none
    def zorder_seed_rows(self, model: Mapping[str, Any], table: agate.Table) -> DataFrame:
        """Return a seed's rows as a DataFrame, and raise at once if a value does not fit its column."""
        chosen = model["config"].get("column_types") or {}
        types = [
            str(chosen.get(name, self.convert_type(table, place))) for place, name in enumerate(table.column_names)
        ]
        with self.connections.exception_handler(f"the seed {model_name(model)}"):
            return seed_rows(self.session, table, types)

    @available.parse_none
    def zorder_seed_load(self, relation: BaseRelation, rows: DataFrame) -> None:
        """Overwrite a seed's table with its rows, in the table's column order, which has partition columns last."""
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
        """Build a seed's rows into a new version of its table, and swap it in."""
        request = self._request(settings, relation, model)
        with self._build_context(model, relation, f"the seed {model_name(model)}"):
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
        """Add a model's rows to its table, or merge them into it.

        ``batch`` contains ``strategy``, ``overwrite`` and ``on_schema_change``.
        """
        request = self._request(settings, relation, model)
        with self._build_context(model, relation, sql):
            merge = merge_settings(model, batch["strategy"])
            how = Batch(batch["overwrite"], batch["on_schema_change"], settings.optimize != "never", merge)
            table = for_format(self.session, request)
            now = table.begin()
            # queries that the model ran on its table at compilation read the files of that time
            compiled_with = self._compiled_files.pop(relation, now)
            before = compiled_with if now is not None else None
            report = table.increment(lambda: self.connections.query(sql), request, how, settings.optimize, before)
        return ZorderResponse.of(Outcome.of_increment(report))

    @available.parse_none
    def zorder_warn_of_zone(self, model: str) -> None:
        """Warn if dbt's batches, which follow UTC, may contain rows of two partitions in the session's time zone."""
        if self.zorder_in_session():
            warn_unless_utc(self.session, model)

    @available.parse_none
    def zorder_merge_source(
        self,
        settings: ModelSettings,
        relation: BaseRelation,
        source: BaseRelation,
        model: Mapping[str, Any],
        batch: Mapping[str, Any],
    ) -> BaseRelation:
        """Return a view of a MERGE's rows, with structs adapted to the table's by ``on_schema_change``."""
        request = self._request(settings, relation, model)
        with self._build_context(model, relation, f"the structs of {relation}"):
            df = self.session.table(str(source))
            rows = lakehouse_table(self.session, request).merge_source(
                df, request, Batch(on_schema_change=batch["on_schema_change"])
            )
            if rows is df:
                return source
            identifier = MODEL_SCOPES.create_view(rows, str(model["alias"]))
        return self.Relation.create(schema=GLOBAL_VIEWS, identifier=identifier, type=self.Relation.View)

    @available.parse_none
    def zorder_merge(
        self, settings: ModelSettings, relation: BaseRelation, sql: str, model: Mapping[str, Any]
    ) -> ZorderResponse:
        """Run a model's MERGE into a Delta or Iceberg table, then check the table's layout."""
        request = self._request(settings, relation, model)
        with self._build_context(model, relation, sql):
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
        """Build a snapshot's first version from its query, or the next version from the query of its changes."""
        self.connections.require_server("Snapshots of Parquet tables need")
        with self._build_context(model, relation, sql):
            first = None if exists else self.connections.query(sql)
            by = settings or snapshot_settings(model, self.connections.query(sql) if first is None else first, columns)
            request = self._request(by, relation, model)
            if first is not None:
                check_absent(self.session, request.table)
                return ZorderResponse.of(_build(self.session, first, request, is_first=True))
            current = model["config"].get("dbt_valid_to_current")
            names = SnapshotColumns(columns["dbt_scd_id"], columns["dbt_valid_to"], current)
            may_rewrite = by.optimize != "never"
            taken = take_snapshot(self.session, sql, request, names, may_rewrite=may_rewrite)
            return ZorderResponse.of(None if taken is None else Outcome.of_increment(taken))

    @available.parse_none
    def zorder_check_absent(self, relation: BaseRelation) -> None:
        """Raise if the first run of an incremental model without ``zorder_by`` would replace an existing table."""
        with dbt_errors():
            check_absent(self.session, table_name(relation))

    @available.parse_none
    def zorder_begin(self, relation: BaseRelation) -> None:
        """Complete the batches that a failed run has left in a table's journal, and store the table's file list.

        If another run adds files after this, this model's run fails instead of adding the same rows again.
        """
        if self.zorder_in_session():
            with self.connections.exception_handler(f"recover {relation}"):
                files = begin(self.session, table_name(relation))
            if files is not None:
                self._compiled_files.keep_first(relation, files)

    @available.parse_none
    def zorder_files(self, relation: BaseRelation) -> Mapping[str, int] | None:
        """Return the file list of a batch's table, or None if dbt-zorder does not manage the table."""
        with self.connections.exception_handler(f"list {relation}"):
            return begin(self.session, table_name(relation))

    @available.parse_none
    def zorder_after_hooks(self, relation: BaseRelation, before: Mapping[str, int]) -> None:
        """Accept the files that a model's own hooks have added since ``before``, so that they are no conflict."""
        if self._compiled_files.equal(relation, before):
            after = self.zorder_files(relation)
            if after is not None:
                self._compiled_files.put(relation, after)

    @available.parse_none
    def zorder_recover(self, relation: BaseRelation) -> None:
        """Complete the batches that a failed run has left, for a model that no longer has ``zorder_by``.

        Do nothing without an open session, because such a model does not need one.
        """
        session = self._statement_session()
        if session is not None:
            with self.connections.exception_handler(f"recover {relation}"):
                recover(session, table_name(relation))

    @available.parse(lambda *_, **__: False)
    def zorder_drop(self, relation: BaseRelation) -> bool:
        """Drop a z-ordered table with its stats and versions. Return False if dbt-zorder does not manage the table."""
        return self.zorder_in_session() and drop_table(self.session, table_name(relation))

    @available.parse_none
    def zorder_rename_stats(self, old: BaseRelation, new: BaseRelation) -> None:
        """Rename the stats relation of a renamed table."""
        if self.zorder_in_session():
            rename_stats(self.session, table_name(old), table_name(new))

    @contextmanager
    def _build_context(self, model: Mapping[str, Any], relation: BaseRelation, sql: str) -> Iterator[None]:
        """Log the progress of a model's build, translate its errors to dbt's, and refresh the table afterwards."""
        in_process = self.zorder_in_process()

        def check(phase: str) -> None:
            if phase in ("query", "sample", "write"):  # in later phases the rows may be written already
                _ = self.session  # raises if the run was cancelled

        with (
            dbt_errors(sql, model=model),
            report_phases_to(check),
            progress(self.session, str(model["name"])),
        ):
            if in_process:
                check_grants(self.session, model)
            yield
            if not in_process:
                self.execute(f"refresh table {relation}")  # the connection's session may have cached the version before

    # reads, and the operations on tables

    @available.parse(lambda *_, **__: "")
    def zorder_scan_sql(self, relation: str, predicate: str, alias: str | None = None) -> str:
        """Return a FROM item that reads only the files of a relation that may match a predicate."""
        if not self.zorder_in_session() or not self._is_there(relation):
            # there are no stats without a session or before a first run; the line break ends a comment at the end of
            # the predicate
            named = f" as {alias}" if alias else ""
            return f"(select * from {relation}{named} where ({predicate}\n)){named}"
        with dbt_errors():
            return pruning.scan_sql(self.session, relation, predicate, alias)

    def _is_there(self, relation: str) -> bool:
        try:
            return self.session.catalog.tableExists(relation)
        except Exception:  # not a plain name: pruning raises a better error
            return True

    @available.parse_none
    def zorder_operations(self) -> Operations:
        """Return the operations and data tests of tables, for macros that run at execution only."""
        return Operations(
            self.connections.session, lambda table: find_readers(self.get_macro_resolver(), self.config, table)
        )


def _build(spark: SparkSession, df: DataFrame, request: BuildRequest, *, is_first: bool = False) -> Outcome:
    """Build a table in the requested format. With ``is_first``, raise if the table exists at the swap."""
    guard = (lambda: check_absent(spark, request.table)) if is_first else None
    return Outcome.of_build(for_format(spark, request).build(df, request, guard))
