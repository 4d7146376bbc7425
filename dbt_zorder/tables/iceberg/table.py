"""Provide the Iceberg table."""

from __future__ import annotations

from typing import ClassVar

from dbt_zorder.tables.iceberg.format import ICEBERG
from dbt_zorder.tables.lakehouse.format import Format
from dbt_zorder.tables.lakehouse.table import LakehouseTable


class IcebergTable(LakehouseTable):
    """An Iceberg table; see ``tables.base.Table``."""

    form: ClassVar[Format] = ICEBERG
