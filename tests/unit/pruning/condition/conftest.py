from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def stats_are() -> None:
    """Conditions do not depend on whether stats are in memory or read by a job."""
