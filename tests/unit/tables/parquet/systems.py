"""This machine's disk as another file system, for what goes through Hadoop's client."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.spark import files
from dbt_zorder.spark.files import open_path


class System:
    """Hadoop's file system of this disk, but for what a class below it does in another way."""

    def __init__(self, system: Any) -> None:
        self.system = system

    def __getattr__(self, name: str) -> Any:
        return getattr(self.system, name)


def opened_as(monkeypatch: pytest.MonkeyPatch, kind: Callable[[Any], System]) -> None:
    """Let all paths be of a file system of this kind."""

    def opened(session: SparkSession, path: str) -> tuple[System, Any]:
        system, place = open_path(session, path)
        return kind(system), place

    monkeypatch.setattr(files, "open_path", opened)
