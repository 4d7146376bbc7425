"""What the rooms below the adapter log, in dbt's own log."""

from __future__ import annotations

import logging

from dbt.adapters.events.logging import AdapterLogger
from dbt_common.exceptions import EventCompilationError

_LOG = AdapterLogger("Zorder")


def warn(message: str) -> None:
    """Warn by dbt's log, and fail no run by it, whatever ``--warn-error`` says.

    The rows of a model may be in by then, and the next run would add them again.
    """
    try:
        _LOG.warning(message)
    except EventCompilationError:
        _LOG.info(f"{message} (no error in spite of warn-error, as rows may be written already)")


class DbtHandler(logging.Handler):
    """Hands the records of Python's logging over to dbt: debug goes to ``logs/dbt.log``, info also to the terminal."""

    def emit(self, record: logging.LogRecord) -> None:
        """Log one record at dbt's level of the same name."""
        if record.levelno >= logging.WARNING:
            warn(record.getMessage())
        elif record.levelno >= logging.INFO:
            _LOG.info(record.getMessage())
        else:
            _LOG.debug(record.getMessage())


def forward_logs() -> None:
    """Let dbt log what this package logs; done once, however often it is called."""
    logger = logging.getLogger("dbt_zorder")
    if not any(isinstance(handler, DbtHandler) for handler in logger.handlers):
        logger.addHandler(DbtHandler())
        logger.setLevel(logging.DEBUG)
        logger.propagate = False  # whatever library set up the root logger would print it a second time
