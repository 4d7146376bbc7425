"""The rule of the suites' second run: whatever can be z-ordered is, by the first of its columns that has an order."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dbt_common.exceptions import DbtRuntimeError
from pyspark.sql.types import StringType, StructField, StructType

from dbt_zorder.adapter.config import ModelSettings
from dbt_zorder.adapter.impl import ZorderAdapter
from dbt_zorder.errors import ZorderError
from dbt_zorder.layout.keys import key_of
from dbt_zorder.spark.columns import ResolvedColumn
from dbt_zorder.spark.sql import quote_name

FILES = 2
MATERIALIZATIONS = ("table", "incremental", "seed", "snapshot")

_settings_of = ZorderAdapter.zorder_settings


def zorder_settings(adapter: ZorderAdapter, model: Mapping[str, Any]) -> ModelSettings | None:
    """In place of ``ZorderAdapter.zorder_settings``: as if each project said ``+zorder_by``, of its own columns."""
    config = model["config"]
    if config.get("zorder_by") is None and config.get("materialized") in MATERIALIZATIONS:
        column = first_column(adapter, model)
        if column is not None and (config.get("file_format") or "parquet") in ("parquet", "delta"):
            model = {**model, "config": {**config, "zorder_by": quote_name(column), "zorder_files": FILES}}
    settings: ModelSettings | None = _settings_of(adapter, model)
    return settings


def first_column(adapter: ZorderAdapter, model: Mapping[str, Any]) -> str | None:
    """Return the name of a model's first column that rows can be ordered by; None if it has none."""
    taken = model["config"].get("partition_by") or []
    partitions = {name.lower() for name in ([taken] if isinstance(taken, str) else taken)}
    for field in _columns(adapter, model):
        try:
            key_of(ResolvedColumn((field.name,), field.dataType))
        except ZorderError:
            continue
        if field.name.lower() not in partitions:
            return field.name
    return None


def _columns(adapter: ZorderAdapter, model: Mapping[str, Any]) -> StructType:
    if model["resource_type"] == "seed":
        with Path(model["root_path"], model["original_file_path"]).open(encoding="utf-8-sig") as file:
            names = next(csv.reader(file, delimiter=model["config"].get("delimiter") or ","), [])
        return StructType([StructField(name, StringType()) for name in names])
    if model.get("language") != "sql":
        return StructType()  # nobody knows a Python model's columns before it has run
    try:
        with adapter.connections.exception_handler(model["compiled_code"]):
            return adapter.session.sql(model["compiled_code"]).schema
    except DbtRuntimeError:  # not a query by itself: it needs its sql_header, or is not to succeed
        return StructType()
