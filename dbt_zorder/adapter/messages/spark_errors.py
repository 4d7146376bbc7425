"""Errors of Spark as a user wants them: what is wrong and in which SQL; plans and Java's stack traces go to the log."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from dbt.adapters.events.logging import AdapterLogger
from dbt_common.exceptions import DbtDatabaseError, DbtRuntimeError

from dbt_zorder.adapter.session.gateway import end_told
from dbt_zorder.spark.messages import full_text, message_of

_LOG = AdapterLogger("Spark")

_POSITION = re.compile(r"\bline (\d+)[,]? pos(?:ition)? (\d+)")
_MARK = re.compile(r"-*\^+\Z")
_LINES_OF_SQL = 3


@contextmanager
def told(sql: str) -> Iterator[None]:
    """Turn errors of Spark into dbt's, with a short message; all that Spark said goes to the debug log.

    Raises:
        DbtDatabaseError: for whatever the block raises, but for errors that are dbt's already.
    """
    try:
        yield
    except DbtRuntimeError:
        _LOG.debug(f"Error while running:\n{sql}")
        raise
    except Exception as exc:
        _LOG.debug(f"Error while running:\n{sql}")
        _LOG.debug(full_text(exc))
        raise DbtDatabaseError(short_message(exc, sql)) from exc


def short_message(exc: BaseException, sql: str = "") -> str:
    """Return what an error of Spark says: without plans and stack traces, with the line of the SQL that it points to.

    Args:
        exc: the error.
        sql: the statement that failed; empty if there is none to show.
    """
    ended = end_told(exc)
    if ended:
        return ended
    text = message_of(exc)
    return _shortened(text) if "== SQL" in text else text + _pointed(text, sql)


def _shortened(text: str) -> str:
    """Keep of the SQL that Spark shows the lines just above its mark: it shows the whole of what it cannot parse."""
    head, *pieces = text.split("\n== SQL")
    shown = [head.rstrip()]
    for piece in pieces:
        title, *lines = piece.splitlines()
        marked = next((place for place, line in enumerate(lines) if _MARK.match(line.strip())), len(lines))
        above = [line for line in lines[:marked] if line.strip()]
        shown += [f"== SQL{title}", *above[-_LINES_OF_SQL:], *lines[marked : marked + 1]]
    return "\n".join(shown).strip()


def _pointed(text: str, sql: str) -> str:
    """Return the line of the SQL that a message gives only the position of, and a mark below it."""
    position = _POSITION.search(text)
    lines = sql.splitlines()
    if position is None or not 0 < int(position[1]) <= len(lines):
        return ""
    line, start = lines[int(position[1]) - 1], int(position[2])
    word = re.match(r"`[^`]*`|[\w.]+", line[start:])
    return f"\n== SQL ==\n{line}\n{' ' * start}{'^' * (len(word[0]) if word else 1)}"
