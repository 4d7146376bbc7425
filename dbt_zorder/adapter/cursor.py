"""A database cursor over a Spark session, as dbt expects one."""

from __future__ import annotations

from typing import Any

from dbt.adapters.spark.session import Connection, Cursor, SessionConnectionWrapper
from pyspark.sql import Row, SparkSession

from dbt_zorder.adapter.scope import SCOPES
from dbt_zorder.adapter.spark_errors import told


class SessionHandle(SessionConnectionWrapper):
    """dbt-spark's wrapper around a session that is already open."""

    def __init__(self, session: SparkSession) -> None:
        super().__init__(_SessionConnection(session))
        self.session = session


class _SessionConnection(Connection):
    def __init__(self, session: SparkSession) -> None:
        super().__init__()
        self._session = session

    def cursor(self) -> Cursor:
        return _SessionCursor(self._session)


class _SessionCursor(Cursor):
    """Runs SQL in the session as it is: dbt-spark's own applies the profile's settings anew before every statement."""

    def __init__(self, session: SparkSession) -> None:
        super().__init__()
        self._session = session
        self._sql = ""

    def execute(self, sql: str, *parameters: Any) -> None:
        if parameters:
            sql = sql % parameters
        self._sql = sql
        SCOPES.note_set(self._session, sql)
        self._df = self._session.sql(sql)

    def fetchall(self) -> list[Row] | None:
        # a query runs only now, where dbt no longer handles errors
        with told(self._sql):
            return super().fetchall()

    def fetchone(self) -> Row | None:
        with told(self._sql):
            return super().fetchone()
