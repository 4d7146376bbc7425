from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

import pytest

from dbt_zorder.adapter.session import endpoint
from dbt_zorder.adapter.session.open import CONNECT_MODE, REMOTE_SETTINGS, SessionError, open_session

pytest.importorskip("grpc", reason="PySpark is here without its client of Connect")


class Connection:
    """A connection that records statements, and refuses one setting."""

    def __init__(self) -> None:
        self.statements: list[str] = []
        self.description = None

    def cursor(self) -> Connection:
        self._cursor: Any = self
        return self

    def close(self) -> None:
        """Do nothing."""

    def execute(self, statement: str) -> None:
        self.statements.append(statement)
        if "maxConcurrentOutputFileWriters" in statement:
            msg = "[CANNOT_MODIFY_CONFIG]"
            raise RuntimeError(msg)

    def fetchall(self) -> list[Any]:
        return []


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, CONNECT_MODE, "1")


def test_a_connection_has_one_session_whose_settings_the_profile_overrides() -> None:
    key = "spark.sql.parquet.outputTimestampType"
    credentials: Any = SimpleNamespace(schema="shop", server_side_parameters={key: "INT96"})
    connection, other = Connection(), Connection()
    session = endpoint.endpoint_session(connection, credentials)
    assert endpoint.endpoint_session(connection, credentials) is session
    assert endpoint.endpoint_session(other, credentials) is not session
    assert connection.statements == [f"SET `{name}`={value}" for name, value in REMOTE_SETTINGS.items() if name != key]


def test_a_session_in_this_process_is_not_opened_beside_it(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dbt_zorder.adapter.session.open._opened", {})
    monkeypatch.setattr("dbt_zorder.adapter.session.open._users_session", lambda: None)
    with pytest.raises(SessionError, match="writes plans, as SQL for the method of another target"):
        open_session({}, str(tmp_path))
