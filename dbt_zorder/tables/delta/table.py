"""Provide the Delta Lake table."""

from __future__ import annotations

from typing import ClassVar

from dbt_zorder.tables.delta.format import DELTA
from dbt_zorder.tables.lakehouse.format import Format
from dbt_zorder.tables.lakehouse.table import LakehouseTable


class DeltaTable(LakehouseTable):
    """A Delta Lake table; see ``tables.base.Table``."""

    form: ClassVar[Format] = DELTA
