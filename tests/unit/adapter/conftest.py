from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def conf_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder in which Spark looks for its own files, empty yet."""
    found = tmp_path / "conf"
    found.mkdir()
    monkeypatch.setenv("SPARK_CONF_DIR", str(found))
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    return found
