from __future__ import annotations

import pytest

from dbt_zorder.adapter.spark_errors import short_message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[X] no\nline 2\n\nJVM stacktrace:\norg.apache...\n\tat x", "[X] no\nline 2"),
        ("no\n\tat org.apache.Foo\nCaused by: y", "no"),
        ("Job aborted\nDriver stacktrace:\n\tat x", "Job aborted"),
        ("plain", "plain"),
        ("", "ValueError"),
        ("\tat x", "ValueError"),
    ],
)
def test_the_java_stack_trace_is_left_out(text: str, message: str) -> None:
    assert short_message(ValueError(text)) == message
