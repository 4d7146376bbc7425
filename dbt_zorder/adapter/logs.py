"""What the rooms below the adapter log, in dbt's own log."""

from __future__ import annotations

import logging

from dbt.adapters.events.logging import AdapterLogger


class DbtHandler(logging.Handler):
    """Hands the records of Python's logging over to dbt: debug goes to ``logs/dbt.log``, info also to the terminal."""

    def __init__(self) -> None:
        super().__init__()
        self._log = AdapterLogger("Zorder")

    def emit(self, record: logging.LogRecord) -> None:
        """Log one record at dbt's level of the same name."""
        if record.levelno >= logging.WARNING:
            self._log.warning(record.getMessage())
        elif record.levelno >= logging.INFO:
            self._log.info(record.getMessage())
        else:
            self._log.debug(record.getMessage())


def forward_logs() -> None:
    """Let dbt log what this package logs; done once, however often it is called."""
    logger = logging.getLogger("dbt_zorder")
    if not any(isinstance(handler, DbtHandler) for handler in logger.handlers):
        logger.addHandler(DbtHandler())
        logger.setLevel(logging.DEBUG)
        logger.propagate = False  # whatever library set up the root logger would print it a second time
