from __future__ import annotations

from importlib import import_module
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from dbt_zorder.adapter.messages.spark_errors import short_message
from dbt_zorder.adapter.session.gateway import JAVA_ENDED, SERVER_ENDED, has_ended, reset_gateway

PROTOCOL: Any = import_module("py4j.protocol")


def session_of(jsc: object, code: int | None = None, *, launched: bool = True) -> Any:
    gateway = SimpleNamespace(proc=SimpleNamespace(poll=lambda: code)) if launched else SimpleNamespace()
    return SimpleNamespace(_sc=SimpleNamespace(_jsc=jsc, _gateway=gateway))


def test_a_session_has_ended_when_it_was_stopped_or_its_process_is_gone(spark: SparkSession) -> None:
    assert not has_ended(spark)
    assert has_ended(session_of(None))
    assert has_ended(session_of(object(), -9))
    assert not has_ended(session_of(object()))
    assert not has_ended(session_of(object(), launched=False))
    remote: Any = SimpleNamespace()
    assert not has_ended(remote)


def test_only_what_is_kept_of_the_ended_process_is_forgotten(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: Any = SparkContext
    before = (kept._gateway, kept._jvm, kept._active_spark_context)
    reset_gateway(session_of(object(), -9))
    assert (kept._gateway, kept._jvm, kept._active_spark_context) == before
    stopped: Any = SimpleNamespace(_sc=SimpleNamespace(_jsc=None, _gateway=kept._gateway))
    assert has_ended(stopped)
    reset_gateway(stopped)
    assert (kept._gateway, kept._jvm, kept._active_spark_context) == before, "its process serves the next session"
    ended = session_of(object(), -9)
    for name, value in (("_gateway", ended._sc._gateway), ("_jvm", object()), ("_active_spark_context", ended._sc)):
        monkeypatch.setattr(SparkContext, name, value)
    monkeypatch.setattr(SparkSession, "_instantiatedSession", ended)
    reset_gateway(ended)
    assert (kept._gateway, kept._jvm, kept._active_spark_context) == (None, None, None)
    assert SparkSession._instantiatedSession is None
    assert has_ended(ended)


@pytest.mark.parametrize(
    ("error", "is_told"),
    [
        (ConnectionRefusedError(111, "Connection refused"), True),
        (PROTOCOL.Py4JNetworkError("Answer from Java side is empty"), True),
        (PROTOCOL.Py4JError("An error occurred while calling o1.x"), False),
        (FileNotFoundError(2, "No such file"), False),
    ],
)
def test_that_java_does_not_answer_is_said_in_words(error: Exception, is_told: bool) -> None:
    assert (short_message(error) == JAVA_ENDED) is is_told


@pytest.mark.parametrize(
    "said",
    [
        "[NO_ACTIVE_SESSION] No active Spark session found. Please create a new Spark session before running the code.",
        "[RETRIES_EXCEEDED] The maximum number of retries has been exceeded.",
        "[INVALID_HANDLE.SESSION_CHANGED] The handle 0 is invalid.",
        '<_MultiThreadedRendezvous of RPC that terminated with: status = StatusCode.UNAVAILABLE details = "x">',
    ],
)
def test_so_is_that_a_server_has_gone(said: str) -> None:
    assert short_message(ValueError(said)) == SERVER_ENDED
