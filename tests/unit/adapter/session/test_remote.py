from __future__ import annotations

import socket
import time

import pytest

from dbt_zorder.adapter.session.remote import RemoteError, _without_secrets, connect, redact


@pytest.mark.parametrize(
    "url", ["sc://localhost:{}", "sc://localhost:{}/;token=abc", "sc://no-such-host.invalid:15002"]
)
def test_a_server_that_is_not_there_is_one_sentence_at_once(url: str) -> None:
    pytest.importorskip("grpc")
    with socket.socket() as taken:  # bound, but nobody listens
        taken.bind(("localhost", 0))
        started = time.monotonic()
        with pytest.raises(
            RemoteError, match=r"No Spark Connect server answers at sc://.*\(spark_remote\): "
        ) as caught:
            connect(url.format(taken.getsockname()[1]), {})
    assert len(str(caught.value).splitlines()) == 1
    assert time.monotonic() - started < 60


def test_a_missing_client_is_told_with_the_command_that_mends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyspark.sql.connect.session", None)
    with pytest.raises(RemoteError, match=r"pip install 'pyspark\[connect\]'"):
        connect("sc://localhost:1", {})


@pytest.mark.parametrize("url", ["sc://localhost:1;token=SECRET", "sc://localhost:1/;user_id=me;token=SECRET="])
def test_a_token_is_in_no_message(url: str) -> None:
    pytest.importorskip("grpc")
    with pytest.raises(RemoteError) as caught:
        connect(url, {})
    assert "SECRET" not in str(caught.value)


def test_a_piece_of_an_address_that_an_error_quotes_is_not_shown() -> None:
    url = "sc://host:15002/;user_id=me;token=SECRET="
    shown = _without_secrets(url, ValueError("[INVALID_CONNECT_URL] Parameter 'token=SECRET=' should be key=value"))
    assert "SECRET" not in shown
    assert "INVALID_CONNECT_URL" in shown


def test_a_token_is_not_shown() -> None:
    assert redact("sc://host:443/;token=SECRET;user_id=me") == "sc://host:443/"
