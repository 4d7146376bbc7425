"""What an error of Spark says, without its plans and Java's stack traces."""

from __future__ import annotations

import re

_JAVA = ("\tat ", "JVM stacktrace:", "Driver stacktrace:")
# what an analysis error says of the plan, behind the position in the SQL or the SQLSTATE
_PLAN = re.compile(r"(; line \d+ pos \d+|SQLSTATE: \w{5});\n.*", re.DOTALL)
_GATEWAY = re.compile(r"\AAn error occurred while calling \S+\n: ")
_STAGE = re.compile(r"Job aborted due to stage failure: .*?Lost task \S+ in stage \S+ \(TID \d+\) \([^)]*\): ")
_CLASS = re.compile(r"\A(?:[a-z]\w*\.){2,}[A-Z][\w$]*(?:Exception|Error): ")
_WAITED = re.compile(r"\A(?:\S+ )?Exception thrown in awaitResult:\s*\Z")
"""What Spark says of an error in a thread of its own; what it was stands below, among the causes."""
_UNREADABLE = "[FAILED_READ_FILE.NO_HINT]"
"""Names the file alone."""
_CAUSE = re.compile(r"^Caused by: (.+)$", re.MULTILINE)
_WORKER_FRAME = re.compile(r'  File "[^"]*pyspark(?:\.zip)?/[^"]*", line .*\n(?:    .*\n)*')


def full_text(exc: BaseException) -> str:
    """Return all that an error of Spark says, with its Java stack trace where there is one."""
    java = getattr(exc, "_stackTrace", None) or getattr(exc, "_stacktrace", None)
    return str(exc) if not java else f"{exc}\n{java}"


def message_of(exc: BaseException) -> str:
    """Return what an error of Spark says, with the cause where Spark itself says nothing of it; never an empty text."""
    lines: list[str] = []
    for line in str(exc).splitlines():
        if line.startswith(_JAVA):
            break
        lines.append(line)
    text = _GATEWAY.sub("", "\n".join(lines).strip())
    for prefix in (_CLASS, _STAGE, _CLASS):
        text = prefix.sub("", text, count=1)
    causes = [_CLASS.sub("", cause) for cause in _CAUSE.findall(full_text(exc))]
    if _WAITED.match(text):
        text = next((cause for cause in causes if not _WAITED.match(cause)), text)
    if _UNREADABLE in text and causes:
        text = f"{text.rstrip()}\n{causes[-1]}"
    text = _PLAN.sub(r"\1", text)
    return _WORKER_FRAME.sub("", text + "\n").strip() or type(exc).__name__


def in_one_line(exc: BaseException) -> str:
    """Return the same as one line, to stand in a sentence."""
    return " ".join(message_of(exc).split())


def first_line(exc: BaseException) -> str:
    """Return the first line of an error's message, without Spark's codes for machines."""
    return message_of(exc).splitlines()[0].split(" SQLSTATE")[0]
