"""Figures as people read them."""

from __future__ import annotations

import pytest

from dbt_zorder.humanize import counted, size_text


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (None, "?"),
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (32_226_700, "32.2 MB"),
        (5 * 10**9, "5.0 GB"),
        (7 * 10**15, "7000.0 TB"),
    ],
)
def test_bytes_are_told_in_thousands(size: int | None, text: str) -> None:
    assert size_text(size) == text


def test_one_is_no_plural() -> None:
    assert [counted(number, "file") for number in (0, 1, 1600)] == ["0 files", "1 file", "1,600 files"]
