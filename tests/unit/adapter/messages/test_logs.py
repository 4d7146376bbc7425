from __future__ import annotations

import logging

import pytest
from dbt_common.exceptions import EventCompilationError

from dbt_zorder.adapter.messages import logs


class Recorder:
    def __init__(self) -> None:
        self.said: list[tuple[str, str]] = []

    def debug(self, text: str) -> None:
        self.said.append(("debug", text))

    def info(self, text: str) -> None:
        self.said.append(("info", text))

    def warning(self, text: str) -> None:
        self.said.append(("warning", text))


def test_each_level_reaches_dbts_own(monkeypatch: pytest.MonkeyPatch) -> None:
    handler = logs.DbtHandler()
    recorder = Recorder()
    monkeypatch.setattr(logs, "_LOG", recorder)
    for level in (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR):
        handler.emit(logging.LogRecord("dbt_zorder", level, __file__, 1, "%s files", (3,), None))
    assert recorder.said == [(level, "3 files") for level in ("debug", "info", "warning", "warning")]


def test_a_warning_fails_no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    class Strict(Recorder):
        def warning(self, text: str) -> None:
            raise EventCompilationError(text, None)

    recorder = Strict()
    monkeypatch.setattr(logs, "_LOG", recorder)
    logs.warn("no comments")
    assert recorder.said == [("info", "no comments (no error in spite of warn-error, as rows may be written already)")]


def test_logs_are_forwarded_once() -> None:
    logs.forward_logs()
    logs.forward_logs()
    handlers = logging.getLogger("dbt_zorder").handlers
    assert sum(isinstance(handler, logs.DbtHandler) for handler in handlers) == 1
