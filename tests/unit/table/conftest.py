from __future__ import annotations

from typing import Any

import pytest

from dbt_zorder.layout.placing import Rows, rows_of_files
from dbt_zorder.table import held_rows


@pytest.fixture(params=["here", "by Spark"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return by whom rows are laid out and written; for tests of what must not depend on it."""
    if request.param == "by Spark":
        monkeypatch.setattr(held_rows, "most_bytes_of", lambda *_: 0)
    return str(request.param)


def lose_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let what is written here lack a row."""

    def lacking(*args: Any) -> list[Rows]:
        first, *others = rows_of_files(*args)
        return [first[1:], *others]

    monkeypatch.setattr(held_rows, "rows_of_files", lacking)
