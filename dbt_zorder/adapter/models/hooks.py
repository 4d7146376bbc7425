"""Hooks that other adapters need and that cannot work here; found before anything is built."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from dbt_zorder.adapter.names import model_name
from dbt_zorder.errors import ConfigError

_OF_FORMATS = re.compile(r"\s*(optimize|vacuum)\s+(table\s+)?\{\{\s*this\b", re.IGNORECASE)
_INSTEAD = {
    "OPTIMIZE": "zorder_by lays the table out in each run, and appended files anew when that is due",
    "VACUUM": "old versions go by zorder_keep_versions and zorder_grace_hours",
}


def check_hooks(model: Mapping[str, Any]) -> None:
    """Find out whether a hook runs Delta Lake's OPTIMIZE or VACUUM on a Parquet table, as models from Databricks do.

    A hook after the model fails with its rows in, so that the next run adds them again.

    Raises:
        ConfigError: one does.
    """
    config = model["config"]
    if str(config.get("file_format") or "parquet").lower() != "parquet":
        return
    for kind in ("pre-hook", "post-hook"):
        for hook in config.get(kind) or []:
            text = str(hook.get("sql", "") if isinstance(hook, Mapping) else hook)
            found = _OF_FORMATS.match(text)
            if found is not None:
                command = found[1].upper()
                msg = (
                    f"Model {model_name(model)}: the {kind} {text.strip()!r} is a command of Delta Lake, and the table "
                    f"is in Parquet, so the run would fail. Leave the hook out: {_INSTEAD[command]}."
                )
                raise ConfigError(msg)
