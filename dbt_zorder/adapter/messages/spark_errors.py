"""Translator of errors to dbt's error classes. Messages name the model and quote the SQL.

Query plans and Java stack traces go to the debug log.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from dbt.adapters.events.logging import AdapterLogger
from dbt_common.exceptions import CompilationError, DbtDatabaseError, DbtRuntimeError

from dbt_zorder.adapter.names import model_name
from dbt_zorder.adapter.session.gateway import lost_session_message
from dbt_zorder.errors import SchemaChangeError, ZorderError
from dbt_zorder.spark.messages import full_text, message_of

_LOG = AdapterLogger("Spark")

_POSITION = re.compile(r"\bline (\d+)[,]? pos(?:ition)? (\d+)")
_MARK = re.compile(r"-*\^+\Z")
_LINES_OF_SQL = 3


@contextmanager
def dbt_errors(
    sql: str = "", *, model: Mapping[str, Any] | None = None, ours: type[DbtRuntimeError] = CompilationError
) -> Iterator[None]:
    """Translate each error of the block to an error class of dbt, which dbt shows without a stack trace.

    Args:
        sql: the statement that runs, for the log and for quoting the line that Spark points to.
        model: the node that is built, which messages name.
        ours: the class for errors of this package outside of a model.

    Raises:
        CompilationError: the columns of a model have changed, and its config does not allow that.
        DbtRuntimeError: dbt itself raised, or this package did while it built a model.
        DbtDatabaseError: any other error. The message is short, and the full text goes to the debug log.
    """
    try:
        yield
    except DbtRuntimeError:
        if sql:
            _LOG.debug(f"Error while running:\n{sql}")
        raise
    except ZorderError as exc:
        if model is None:
            raise ours(str(exc)) from exc
        kind = CompilationError if isinstance(exc, SchemaChangeError) else DbtRuntimeError
        msg = f"Model {model_name(model)}: {exc}"
        raise kind(msg) from exc
    except Exception as exc:
        _LOG.debug(f"Error while running:\n{sql}")
        _LOG.debug(full_text(exc))
        raise DbtDatabaseError(short_message(exc, sql)) from exc


def short_message(exc: BaseException, sql: str = "") -> str:
    """Return the message of a Spark error without plans and stack traces, with the SQL line that it points to.

    Args:
        exc: the error.
        sql: the statement that failed, or an empty string if there is none to show.
    """
    ended = lost_session_message(exc)
    if ended:
        return ended
    text = message_of(exc)
    return _shortened(text) if "== SQL" in text else text + _pointed(text, sql)


def _shortened(text: str) -> str:
    """Cut the SQL in a message to the lines just above Spark's mark, because Spark quotes a whole unparsable query."""
    head, *pieces = text.split("\n== SQL")
    shown = [head.rstrip()]
    for piece in pieces:
        title, *lines = piece.splitlines()
        marked = next((place for place, line in enumerate(lines) if _MARK.match(line.strip())), len(lines))
        above = [line for line in lines[:marked] if line.strip()]
        shown += [f"== SQL{title}", *above[-_LINES_OF_SQL:], *lines[marked : marked + 1]]
    return "\n".join(shown).strip()


def _pointed(text: str, sql: str) -> str:
    """Return the SQL line at the position that a message gives, with a mark below it."""
    position = _POSITION.search(text)
    lines = sql.splitlines()
    if position is None or not 0 < int(position[1]) <= len(lines):
        return ""
    line, start = lines[int(position[1]) - 1], int(position[2])
    word = re.match(r"`[^`]*`|[\w.]+", line[start:])
    return f"\n== SQL ==\n{line}\n{' ' * start}{'^' * (len(word[0]) if word else 1)}"
