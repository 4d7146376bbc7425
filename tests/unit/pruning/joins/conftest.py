"""What the tests of joins share: sides of any size are run, and each run is noted."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import pytest

from dbt_zorder.pruning.joins import keys, pruner, sides


@pytest.fixture(autouse=True)
def any_side_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pruner, "SIDE_SHARE_AT_MOST", 10.0)


@pytest.fixture(autouse=True)
def runs(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The sides that are run; none is kept from another test."""
    monkeypatch.setattr(sides, "_kept", OrderedDict())
    found: list[Any] = []
    collect = keys.collect_rows

    def collect_rows(*args: Any) -> Any:
        found.append(args)
        return collect(*args)

    monkeypatch.setattr(sides, "collect_rows", collect_rows)
    return found
