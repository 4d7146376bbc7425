"""Handler that forwards this package's log records to dbt's log."""

from __future__ import annotations

import logging

from dbt.adapters.events.logging import AdapterLogger
from dbt_common.exceptions import EventCompilationError

_LOG = AdapterLogger("Zorder")


def warn(message: str) -> None:
    """Log a warning to dbt's log without failing the run, even under ``--warn-error``.

    The model may have written its rows already, and after a failure the next run would add them again.
    """
    try:
        _LOG.warning(message)
    except EventCompilationError:
        _LOG.info(f"{message} (no error in spite of warn-error, as rows may be written already)")


class DbtHandler(logging.Handler):
    """Forwards records of Python's logging to dbt. Debug goes to ``logs/dbt.log``, info also to the terminal."""

    def emit(self, record: logging.LogRecord) -> None:
        """Log one record at dbt's level of the same name."""
        if record.levelno >= logging.WARNING:
            warn(record.getMessage())
        elif record.levelno >= logging.INFO:
            _LOG.info(record.getMessage())
        else:
            _LOG.debug(record.getMessage())


def forward_logs() -> None:
    """Forward this package's log records to dbt. Further calls do nothing."""
    logger = logging.getLogger("dbt_zorder")
    if not any(isinstance(handler, DbtHandler) for handler in logger.handlers):
        logger.addHandler(DbtHandler())
        logger.setLevel(logging.DEBUG)
        logger.propagate = False  # a root logger that another library set up would print it a second time
