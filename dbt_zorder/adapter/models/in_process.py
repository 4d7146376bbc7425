"""What the adapter does because Spark is in dbt's own process: Python models, seeds, and models that leave nothing."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dbt.adapters.base import BaseRelation, available
from dbt.adapters.base.column import Column as BaseColumn
from dbt.adapters.contracts.connection import AdapterResponse
from dbt.adapters.events.logging import AdapterLogger
from dbt.adapters.spark.impl import SparkAdapter
from dbt_common.exceptions import DbtRuntimeError
from dbt_common.invocation import get_invocation_id
from pyspark.sql import DataFrame, SparkSession

from dbt_zorder.adapter.connections import ZorderConnectionManager
from dbt_zorder.adapter.messages.logs import warn
from dbt_zorder.adapter.models.python_models import PythonModelError, run_python
from dbt_zorder.adapter.models.seeds import seed_frame
from dbt_zorder.adapter.models.session_scope import SCOPES, Scope, run_aside
from dbt_zorder.adapter.names import model_name, table_name
from dbt_zorder.spark.catalog_entry import GLOBAL_VIEWS
from dbt_zorder.spark.sql import quote_name
from dbt_zorder.tables.parquet.snapshot import KEY_PART

if TYPE_CHECKING:
    import agate

_LOG = AdapterLogger("Spark")

_BY_PARTITION = {"spark.sql.sources.partitionOverwriteMode": "DYNAMIC"}


class InProcessAdapter(SparkAdapter):
    """dbt-spark's adapter over a session in dbt's own process, as far as z-ordering has no part in it."""

    ConnectionManager = ZorderConnectionManager  # type: ignore[assignment]
    connections: ZorderConnectionManager

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
            batch = _batch_of(config)
            if session is not None and batch is not None and not batch.is_first:
                SCOPES.set_again(session, batch.model)
        return scope

    def _session_if_open(self) -> SparkSession | None:
        """Return the session that statements run in; None over other methods, and once the run was cancelled."""
        with contextlib.suppress(DbtRuntimeError):
            return getattr(self.connections.get_thread_connection().handle, "session", None)
        return None

    def post_model_hook(self, config: Mapping[str, Any], context: Scope) -> None:
        """End a model, also one that failed: drop its temporary views, put back the settings that it changed."""
        try:
            with context:
                batch, session = _batch_of(config), self._session_if_open()
                if session is not None and batch is not None and batch.is_first:
                    SCOPES.keep(session, batch.model)
        except Exception as exc:  # the model is built, or its own error is on its way
            warn(f"What a model changed in the session could not be undone: {exc}")
        super().post_model_hook(config, context)

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
        df = self._run_python(model, code) if model["language"] == "python" else self._query(code)
        with self.connections.exception_handler(code):
            identifier = SCOPES.view(df, str(model["alias"]))
        return self.Relation.create(schema=GLOBAL_VIEWS, identifier=identifier, type=self.Relation.View)

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

    @available.parse_none
    def zorder_seed_rows(self, model: Mapping[str, Any], table: agate.Table) -> DataFrame:
        """Return a seed's rows as a DataFrame; a value that does not fit its column is an error here already."""
        chosen = model["config"].get("column_types") or {}
        types = [
            str(chosen.get(name, self.convert_type(table, place))) for place, name in enumerate(table.column_names)
        ]
        with self.connections.exception_handler(f"the seed {model_name(model)}"):
            df, casts = seed_frame(self.session, table, types)
            if casts:
                kept = df.persist()
                scope = SCOPES.current()
                if scope is not None:
                    scope.callback(kept.unpersist)
                kept.count()
            return df

    @available.parse_none
    def zorder_seed_load(self, relation: BaseRelation, rows: DataFrame) -> None:
        """Make a seed's rows the content of its table, which has its columns, partition columns last."""
        name = table_name(relation).sql
        with self.connections.exception_handler(f"INSERT OVERWRITE TABLE {name}"):
            columns = [quote_name(column) for column in self.session.table(name).columns]
            rows.select(*columns).write.insertInto(name, overwrite=True)

    def _query(self, sql: str) -> DataFrame:
        with self.connections.exception_handler(sql):
            return self.connections.query(sql)

    def _run_python(self, model: Mapping[str, Any], code: str) -> DataFrame:
        scope = SCOPES.current() or Scope()
        SCOPES.look(self.session)
        try:
            return run_python(self.session, model, code, scope.callback)
        except PythonModelError as exc:
            msg = f"Model {model_name(model)} failed:\n{exc}"
            raise DbtRuntimeError(msg) from exc
        finally:
            SCOPES.note_changes(self.session)


@dataclass(frozen=True)
class _Batch:
    """A batch of a microbatch model.

    Attributes:
        model: its name, in this run of dbt and no other.
        is_first: hooks run before it, as they do before no other batch.
    """

    model: str
    is_first: bool


def _batch_of(config: Any) -> _Batch | None:
    """Return the batch that a model's config is of; None if it is not run by batches."""
    model: Any = getattr(config, "model", None)
    if getattr(model, "batch", None) is None:
        return None
    return _Batch(f"{get_invocation_id()} {model.unique_id}", bool(model.config.pre_hook))
