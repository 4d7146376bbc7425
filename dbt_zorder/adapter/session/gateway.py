"""Detection of an ended Java process or Spark Connect server. The system often kills Java when memory is short."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

JAVA_ENDED = (
    "Spark's Java process has ended, or no longer answers. Where memory is short the system ends it without a word: "
    "look at spark.driver.memory in server_side_parameters, and at what else runs on this machine. The next run starts "
    "it anew, and what was being built is as it was, or is completed by its model's next run."
)


SERVER_ENDED = (
    "The Spark Connect server has ended, or was started anew and does not know this run's session. Once it is there, "
    "run again: what was being built is as it was, or is completed by its model's next run."
)
_SERVER_ENDED_MARKS = (
    "[NO_ACTIVE_SESSION]",
    "[RETRIES_EXCEEDED]",
    "[INVALID_HANDLE.SESSION_",
    "StatusCode.UNAVAILABLE",
)


def has_ended(session: SparkSession) -> bool:
    """Return whether a session is unusable, because it was stopped or its Java process has ended."""
    context: Any = getattr(session, "_sc", None)
    if context is None:  # of Spark Connect
        return False
    return context._jsc is None or _has_exited(context._gateway)


def reset_gateway(session: SparkSession) -> None:
    """Clear PySpark's reference to a session's ended Java process. PySpark would never start a new one otherwise.

    Do nothing for a session that was only stopped: its process still runs, and serves the next session.
    """
    context: Any = getattr(session, "_sc", None)
    if context is None or not _has_exited(context._gateway):
        return
    from pyspark import SparkContext  # the client of Spark Connect has none

    context_class: Any = SparkContext
    if context_class._gateway is not context._gateway:
        return
    context._jsc = None
    context_class._active_spark_context = context_class._gateway = context_class._jvm = None
    session_class: Any = SparkSession
    for name in ("_instantiatedSession", "_activeSession"):
        if hasattr(session_class, name):
            setattr(session_class, name, None)


def _has_exited(gateway: Any) -> bool:
    process = getattr(gateway, "proc", None)  # None where Java has started Python
    return process is not None and process.poll() is not None


def lost_session_message(exc: BaseException) -> str:
    """Return the message for an error that means an ended Java process or a lost session, else an empty string."""
    # compared by name, because the Spark Connect client has no py4j
    if isinstance(exc, (ConnectionRefusedError, ConnectionResetError)) or type(exc).__name__ == "Py4JNetworkError":
        return JAVA_ENDED
    return SERVER_ENDED if any(mark in str(exc) for mark in _SERVER_ENDED_MARKS) else ""
