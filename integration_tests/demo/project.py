"""The dbt project of the demo, and how it is run in this process, whose Spark session then stays open."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dbt.cli.main import dbtRunner

FOLDER = Path(__file__).parents[1]
SETTINGS = {"spark.sql.session.timeZone": "UTC", "spark.sql.ansi.enabled": "false"}


@dataclass(frozen=True)
class Run:
    """What a dbt command did.

    Attributes:
        responses: what the adapter says of each model, by the model's name.
        log: lines that dbt wrote.
    """

    responses: Mapping[str, Mapping[str, Any]]
    log: str


def run_dbt(*arguments: str) -> Run:
    """Run a dbt command of the project in the current folder; end the program if it fails."""
    lines: list[str] = []

    def keep(event: Any) -> None:
        lines.append(event.info.msg)

    done = dbtRunner(callbacks=[keep]).invoke([*arguments, "--profiles-dir", "."])
    if not done.success:
        sys.exit(f"dbt {arguments[0]} failed: {done.exception or 'see above'}")
    results: Any = done.result
    return Run({one.node.name: one.adapter_response for one in results.results}, "\n".join(lines))
