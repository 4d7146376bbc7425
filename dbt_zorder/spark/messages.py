"""Shorten Spark's error messages: without query plans and Java stack traces."""

from __future__ import annotations

import contextlib
import logging
import re
import threading
from collections.abc import Iterator

_JAVA = ("\tat ", "\t... ", "\tSuppressed: ", "JVM stacktrace:", "Driver stacktrace:")
# the plan in an analysis error, after the position in the SQL or the SQLSTATE
_PLAN = re.compile(r"(; line \d+ pos \d+|SQLSTATE: \w{5});\n.*", re.DOTALL)
_GATEWAY = re.compile(r"\AAn error occurred while calling \S+\n: ")
_STAGE = re.compile(
    r"Job aborted due to stage failure: .*?Lost task \S+ in stage \S+ \(TID \d+\) \([^)]*\): ", re.DOTALL
)
_CLASS = re.compile(r"\A(?:[a-z]\w*\.){2,}[A-Z][\w$]*(?:Exception|Error): ")
_ONLY_WHERE = re.compile(
    r"\A(?:(?:\S+ )?Exception thrown in awaitResult:\s*"
    r"|(?:\[\w+\] )?Task failed while writing rows\b.*"
    r"|(?:\[\w+\] )?Writing job aborted\b.*"
    r"|Job aborted\."
    r"|(?:[a-z]\w*\.){2,}[A-Z][\w$]*)\Z",
    re.DOTALL,
)
"""Messages that only state where an error occurred, or only its class; their causes state the error."""
_WITHOUT_REASON = re.compile(r"\[FAILED_READ_FILE\.NO_HINT\]|\[FAILED_EXECUTE_UDF\]|reading file [^\n]*Details:\s*\Z")
"""Messages that only name the file or the function."""
_CAUSE = "Caused by: "
_WORKER_FRAME = re.compile(r'  File "[^"]*pyspark(?:\.zip)?/[^"]*", line .*\n(?:    .*\n)*')


_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
_asking = threading.local()


@contextlib.contextmanager
def unlogged() -> Iterator[None]:
    """Keep PySpark from printing the errors that it raises in this thread while the block runs.

    PySpark 4 logs each analysis error as JSON with a Java stack trace when it is created, even if it is caught.
    """
    try:
        from pyspark.logger import PySparkLogger
    except ImportError:  # PySpark 3.5 logs no errors
        yield
        return
    for name in _LOGGERS:
        PySparkLogger.getLogger(name).addFilter(_is_wanted)  # repeated calls add the filter once
    before = getattr(_asking, "quietly", False)
    _asking.quietly = True
    try:
        yield
    finally:
        _asking.quietly = before


def _is_wanted(_: logging.LogRecord) -> bool:
    return not getattr(_asking, "quietly", False)


def full_text(exc: BaseException) -> str:
    """Return the whole text of a Spark error, with its Java stack trace if there is one."""
    java = getattr(exc, "_stackTrace", None) or getattr(exc, "_stacktrace", None)
    return str(exc) if not java else f"{exc}\n{java}"


def message_of(exc: BaseException) -> str:
    """Return the message of a Spark error, or of its outermost cause that gives a reason; never an empty text.

    PySpark 3.5 starts with the place where a task failed, ``TASK_WRITE_FAILED``. PySpark 4 starts with the reason.
    """
    first = _plain(_head(str(exc).splitlines()))
    causes = list(_causes(full_text(exc)))
    text = next((one for one in (first, *causes) if one and not _ONLY_WHERE.match(one)), first)
    if _WITHOUT_REASON.search(text) and causes and causes[-1] not in text:
        text = f"{text.rstrip()}\n{causes[-1]}"
    text = _PLAN.sub(r"\1", text)
    return _WORKER_FRAME.sub("", text + "\n").strip() or type(exc).__name__


def _causes(text: str) -> Iterator[str]:
    """Yield the message of each cause in a Java stack trace, from the outermost."""
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if line.startswith(_CAUSE):
            yield _plain(_head([line.removeprefix(_CAUSE), *lines[number + 1 :]]))


def _head(lines: list[str]) -> str:
    """Return the lines of a message before its stack trace."""
    found: list[str] = []
    for line in lines:
        if line.startswith((*_JAVA, _CAUSE)):
            break
        found.append(line)
    return "\n".join(found).strip()


def _plain(text: str) -> str:
    """Return a message without the classes and the task number that Java puts before it."""
    before = None
    text = _GATEWAY.sub("", text)
    while text != before:
        before, text = text, _STAGE.sub("", _CLASS.sub("", text), count=1)
    return text


def in_one_line(exc: BaseException) -> str:
    """Return the message of a Spark error as one line, to use in a sentence."""
    return " ".join(message_of(exc).split())


def first_line(exc: BaseException) -> str:
    """Return the first line of an error's message, without Spark's SQLSTATE."""
    return message_of(exc).splitlines()[0].split(" SQLSTATE")[0]
