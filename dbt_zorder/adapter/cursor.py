"""A database cursor over a Spark session, as dbt expects one."""

from __future__ import annotations

from typing import Any

from dbt.adapters.spark.session import Connection, Cursor, SessionConnectionWrapper
from dbt_common.exceptions import DbtRuntimeError
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession


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

    def execute(self, sql: str, *parameters: Any) -> None:
        if parameters:
            sql = sql % parameters
        try:
            self._df = self._session.sql(sql)
        except AnalysisException as exc:
            # dbt-spark tells a missing table by the text of this error
            raise DbtRuntimeError(str(exc).split("\n\nJVM stacktrace:")[0]) from exc
