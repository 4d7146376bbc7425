"""Connections over the process's one Spark session. dbt-spark's other methods work unchanged."""

from __future__ import annotations

import os
import re
from collections.abc import Generator
from contextlib import contextmanager
from multiprocessing.context import SpawnContext
from typing import Any

from dbt.adapters.contracts.connection import AdapterRequiredConfig, AdapterResponse, Connection, ConnectionState
from dbt.adapters.exceptions import FailedToConnectError
from dbt.adapters.spark.connections import SparkConnectionManager, SparkConnectionMethod
from dbt.flags import get_flags
from dbt_common.exceptions import DbtDatabaseError, DbtRuntimeError
from pyspark.sql import DataFrame, SparkSession

from dbt_zorder.adapter.credentials import ZorderCredentials
from dbt_zorder.adapter.messages.logs import forward_logs
from dbt_zorder.adapter.messages.spark_errors import dbt_errors
from dbt_zorder.adapter.session.endpoint import endpoint_session, forget_facts, has_client
from dbt_zorder.errors import ZorderError
from dbt_zorder.spark.sql import BLANK

_REMEDY = (
    "set 'method: session' in the profile, or 'spark_remote' to the Spark Connect server of the same cluster, as "
    "sc://localhost:15002."
)
_QUERY = re.compile(rf"\A{BLANK}(?:\({BLANK})*(?:select|with|values|from)\b", re.IGNORECASE)


class ZorderConnectionManager(SparkConnectionManager):
    """Opens sessions with ``dbt_zorder.adapter.session.open``, once per process."""

    TYPE = "spark_zorder"

    def __init__(self, config: AdapterRequiredConfig, mp_context: SpawnContext) -> None:
        super().__init__(config, mp_context)
        forward_logs()
        # dbt debug creates an adapter from a profile without a project, and does not change to the project's folder
        flags = get_flags()  # type: ignore[no-untyped-call]
        root = getattr(config, "project_root", None) or getattr(flags, "PROJECT_DIR", None) or os.getcwd()
        if isinstance(config.credentials, ZorderCredentials):
            config.credentials.resolve_session_dir(root)

    @classmethod
    def open(cls, connection: Connection) -> Connection:
        """Open a connection. With ``method: session`` all connections share the process's session."""
        credentials: Any = connection.credentials
        if connection.state == ConnectionState.OPEN or credentials.method != SparkConnectionMethod.SESSION:
            return super().open(connection)
        # imported here because it imports pyspark's JVM gateway, which other methods do not need
        from dbt_zorder.adapter.cursor import SessionHandle

        connection.handle = SessionHandle(_open_session(credentials), prunes=credentials.zorder_prune)
        connection.state = ConnectionState.OPEN
        return connection

    @classmethod
    def get_response(cls, cursor: Any) -> AdapterResponse:
        """Return dbt-spark's response, and for each table whose files the statement excluded, how many are read."""
        response = super().get_response(cursor)
        reads = getattr(cursor, "reads", ())
        return AdapterResponse(_message=f"{response} ({', '.join(map(str, reads))})") if reads else response

    def has_session(self) -> bool:
        """Return whether ``session`` can return a session."""
        return self.has_server() or has_client()

    def has_server(self) -> bool:
        """Return whether that session is Spark's own, and not one that writes SQL over this connection."""
        connection = self.get_thread_connection()
        has_remote = getattr(connection.credentials, "spark_remote", None) is not None
        return has_remote or getattr(connection.handle, "session", None) is not None

    def require_server(self, what: str) -> None:
        """Check that the session is Spark's own.

        Args:
            what: what needs it, as the subject of a sentence.

        Raises:
            DbtRuntimeError: the connection answers SQL alone.
        """
        if not self.has_server():
            msg = f"{what} a Spark session: {_REMEDY}"
            raise DbtRuntimeError(msg)

    def session(self) -> SparkSession:
        """Return the session behind this thread's connection, or of the profile's spark_remote, or over SQL alone.

        Raises:
            DbtRuntimeError: the connection has no session, and the client of Spark Connect is not installed.
            FailedToConnectError: the server of spark_remote does not answer, or this process has another session.
        """
        connection = self.get_thread_connection()
        if not self.has_session():
            msg = (
                "z-ordering over this method needs PySpark 4 with the client of Spark Connect, by which it writes SQL: "
                f"pip install 'dbt-zorder[connect]'. Or {_REMEDY}"
            )
            raise DbtRuntimeError(msg)
        found: SparkSession | None = getattr(connection.handle, "session", None)
        if found is not None:
            return found
        if self.has_server():
            return _open_session(connection.credentials)
        try:
            return endpoint_session(connection.handle, connection.credentials)
        except ZorderError as exc:
            raise FailedToConnectError(str(exc)) from exc

    def execute(
        self, sql: str, auto_begin: bool = False, fetch: bool = False, limit: int | None = None
    ) -> tuple[AdapterResponse, Any]:
        """Run a statement. Run a query even if its rows are not fetched, such as a hook that calls raise_error."""
        response, table = super().execute(sql, auto_begin=auto_begin, fetch=fetch, limit=limit)
        handle: Any = self.get_thread_connection().handle
        forget_facts(handle)
        if not fetch and _QUERY.match(sql) and hasattr(handle, "run_and_discard"):
            with self.exception_handler(sql):
                handle.run_and_discard()
        return response, table

    def query(self, sql: str) -> DataFrame:
        """Return a query's DataFrame in the session, which reads fewer files if the profile has ``zorder_prune``."""
        handle: Any = self.get_thread_connection().handle
        return handle.run(sql) if hasattr(handle, "run") else self.session().sql(sql)

    def cancel(self, connection: Connection) -> None:
        """Cancel a connection's statements, and the builds that run for it in the session of spark_remote."""
        super().cancel(connection)
        remote = getattr(connection.credentials, "spark_remote", None)
        if remote is not None and getattr(connection.handle, "session", None) is None:
            from dbt_zorder.adapter.session.open import opened

            beside = opened(remote)
            if beside is not None:
                beside.interruptAll()

    @contextmanager
    def exception_handler(self, sql: str) -> Generator[None, None, None]:
        """Translate Spark errors to dbt's. The Java stack trace goes to the debug log."""
        with dbt_errors(sql, ours=DbtDatabaseError):
            yield


def _open_session(credentials: Any) -> SparkSession:
    from dbt_zorder.adapter.session.open import open_session

    try:
        return open_session(
            credentials.server_side_parameters, credentials.session_dir, getattr(credentials, "spark_remote", None)
        )
    except ZorderError as exc:
        raise FailedToConnectError(str(exc)) from exc
