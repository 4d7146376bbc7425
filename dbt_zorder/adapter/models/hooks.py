"""Check, before anything is built, for hooks that other adapters need and that fail here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from dbt_zorder.adapter.names import model_name
from dbt_zorder.errors import ConfigError

_DELTA_COMMAND = re.compile(r"\s*(optimize|vacuum)\s+(table\s+)?\{\{\s*this\b", re.IGNORECASE)
_ALTERNATIVES = {
    "OPTIMIZE": "zorder_by lays the table out in each run, and appended files anew when that is due",
    "VACUUM": "old versions go by zorder_keep_versions and zorder_grace_hours",
}


def check_hooks(model: Mapping[str, Any]) -> None:
    """Raise if a hook runs Delta Lake's OPTIMIZE or VACUUM on a Parquet table, as models from Databricks do.

    A post-hook fails after the model has written its rows, and the next run would add them again.

    Raises:
        ConfigError: a hook runs OPTIMIZE or VACUUM on the model's Parquet table.
    """
    config = model["config"]
    if str(config.get("file_format") or "parquet").lower() != "parquet":
        return
    for kind in ("pre-hook", "post-hook"):
        for hook in config.get(kind) or []:
            text = str(hook.get("sql", "") if isinstance(hook, Mapping) else hook)
            match = _DELTA_COMMAND.match(text)
            if match is not None:
                command = match[1].upper()
                msg = (
                    f"Model {model_name(model)}: the {kind} {text.strip()!r} is a command of Delta Lake, and the table "
                    f"is in Parquet, so the run would fail. Leave the hook out: {_ALTERNATIVES[command]}."
                )
                raise ConfigError(msg)
