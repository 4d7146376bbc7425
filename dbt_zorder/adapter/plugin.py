"""Plugin that dbt loads for ``type: spark_zorder``: the adapter, and the folder of the macros."""

from __future__ import annotations

from pathlib import Path

from dbt.adapters.base import AdapterPlugin

from dbt_zorder.adapter.credentials import ZorderCredentials
from dbt_zorder.adapter.impl import ZorderAdapter


def include_path() -> str:
    """Return the folder of the macros: inside the package in a wheel, beside it in an editable install."""
    package = Path(__file__).parent.parent
    places = [package / "macros", package.parent / "macros"]
    for place in places:
        if (place / "dbt_project.yml").is_file():
            return str(place)
    msg = f"dbt-zorder's macros are neither in {places[0]} nor in {places[1]}: the installation is incomplete."
    raise FileNotFoundError(msg)


Plugin = AdapterPlugin(
    adapter=ZorderAdapter,  # type: ignore[arg-type]
    credentials=ZorderCredentials,
    include_path=include_path(),
    dependencies=["spark"],
    project_name="dbt_zorder",
)
