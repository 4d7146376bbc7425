"""Database cursor over a Spark session, with the interface that dbt expects."""

from __future__ import annotations

import contextlib
import uuid
from typing import Any

from dbt.adapters.spark.session import Connection, Cursor, SessionConnectionWrapper
from dbt_common.exceptions import DbtDatabaseError, DbtRuntimeError
from pyspark.sql import DataFrame, Row, SparkSession

from dbt_zorder.adapter.credentials import AUTO
from dbt_zorder.adapter.messages.spark_errors import dbt_errors
from dbt_zorder.adapter.models.session_scope import MODEL_SCOPES
from dbt_zorder.pruning.plain_sql.statement import Pruned, TableRead, prepare
from dbt_zorder.spark.jvm import has_jvm


class SessionHandle(SessionConnectionWrapper):
    """dbt-spark's wrapper around a session that is already open.

    Attributes:
        reads: tables whose files the last statement excluded in part.
    """

    def __init__(self, session: SparkSession, *, prunes: bool | str = False) -> None:
        super().__init__(_SessionConnection(self))
        self._opened = session
        self._prunes = prunes
        self.reads: tuple[TableRead, ...] = ()
        self._cancelled = False
        self._tag = f"dbt-{uuid.uuid4().hex}"
        self._is_remote = not has_jvm(session)
        (session.addTag if self._is_remote else session.sparkContext.addJobTag)(self._tag)  # of this thread's jobs

    @property
    def session(self) -> SparkSession:
        """The session.

        Raises:
            DbtRuntimeError: the run was cancelled.
        """
        if self._cancelled:
            msg = "The run was cancelled."
            raise DbtRuntimeError(msg)
        return self._opened

    def run(self, sql: str) -> DataFrame:
        """Run a statement and return its DataFrame, from fewer files under ``zorder_prune``; ``reads`` lists them."""
        pruned = prepare(self.session, sql, automatic=self._prunes == AUTO) if self._prunes else Pruned(sql)
        self.reads = pruned.reads
        return pruned.run(self.session)  # the property is read again, because the run may have been cancelled meanwhile

    def run_and_discard(self) -> None:
        """Run the current query and discard its rows. Spark does not start a query whose rows are never fetched."""
        rows = getattr(self._cursor, "_df", None)
        if rows is not None:
            rows.write.format("noop").mode("overwrite").save()

    def fetchmany(self, size: int) -> list[Row]:
        """Return the first ``size`` rows of the query, for dbt's row limit."""
        assert isinstance(self._cursor, _SessionCursor)
        return self._cursor.fetchmany(size)

    def cancel(self) -> None:
        """Cancel the Spark jobs of this connection's thread, and prevent new ones.

        A build that fails this way before its swap leaves its table unchanged.
        """
        self._cancelled = True
        with contextlib.suppress(Exception):  # the session may have ended already
            (self._opened.interruptTag if self._is_remote else self._opened.sparkContext.cancelJobsWithTag)(self._tag)

    def close(self) -> None:
        """Close the cursor, and leave the session open."""
        super().close()
        with contextlib.suppress(Exception):  # the session may have been stopped
            (self._opened.removeTag if self._is_remote else self._opened.sparkContext.removeJobTag)(self._tag)


class _SessionConnection(Connection):
    def __init__(self, handle: SessionHandle) -> None:
        super().__init__()
        self._handle = handle

    def cursor(self) -> Cursor:
        return _SessionCursor(self._handle)


class _SessionCursor(Cursor):
    """Runs SQL in the session without changing settings. dbt-spark's cursor reapplies the profile's each time."""

    def __init__(self, handle: SessionHandle) -> None:
        session = handle.session
        super().__init__()
        self._handle, self._session = handle, session
        self._sql = ""

    def execute(self, sql: str, *parameters: Any) -> None:
        if parameters:
            sql = sql % parameters
        self._sql = sql
        MODEL_SCOPES.track_statement(self._session, sql)
        self._df = self._handle.run(sql)

    def fetchall(self) -> list[Row] | None:
        # the query runs only now, when dbt no longer handles errors
        with dbt_errors(self._sql, ours=DbtDatabaseError):
            return super().fetchall()

    def fetchone(self) -> Row | None:
        with dbt_errors(self._sql, ours=DbtDatabaseError):
            return super().fetchone()

    def fetchmany(self, size: int) -> list[Row]:
        assert self._df is not None
        with dbt_errors(self._sql, ours=DbtDatabaseError):
            return self._df.take(size)
