"""What is to be built for a model, from its settings and its node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dbt.adapters.base import BaseRelation
from pyspark.sql import DataFrame

from dbt_zorder import option_parsers as values
from dbt_zorder.adapter.config import ModelSettings
from dbt_zorder.adapter.names import model_name, table_name
from dbt_zorder.errors import ConfigError, ZorderError
from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableName
from dbt_zorder.spark.columns import case_sensitive, fold_case
from dbt_zorder.spark.plain_names import check_identifier
from dbt_zorder.spark.sql import quote_name
from dbt_zorder.tables.parquet.snapshot import default_columns
from dbt_zorder.tables.reserved import check_name

_KEPT = ("zorder_keep_versions", "zorder_grace_hours", "location_root")
_AS_SNAPSHOT = {"zorder_skip": None, "zorder_weights": None}
"""Of a snapshot that dbt-spark has not on Parquet: built by versions, by its key, for which no weights were given."""


def build_request(
    settings: ModelSettings, relation: BaseRelation, model: Mapping[str, Any], *, sensitive: bool = False
) -> BuildRequest:
    """Return what to build for a model; comments go along as its ``persist_docs`` says.

    Args:
        settings: of the model.
        relation: its table.
        model: its node.
        sensitive: whether the session that builds it distinguishes column names by case.

    Raises:
        ConfigError: ``zorder_weights`` names a column that ``zorder_by`` does not, or one twice.
    """
    persisted = model["config"].get("persist_docs") or {}
    described = {
        quote_name(name) if column.get("quote") else name: column.get("description") or ""
        for name, column in model["columns"].items()
    }
    return BuildRequest(
        table=table_name(relation),
        spec=LayoutSpec(
            by=settings.by,
            files=settings.files,
            file_size=settings.file_size,
            partition_by=settings.partition_by,
            weights=values.given(
                "zorder_weights", settings.weights, values.weights_in_order(settings.by, sensitive=sensitive), None
            ),
            curve=settings.curve,
            encoding=settings.encoding,
            page_rows=settings.page_rows,
            compression=settings.compression,
        ),
        stats_columns=settings.stats_columns,
        bloom=settings.bloom,
        options=settings.options,
        comment=(model.get("description") or "") if persisted.get("relation") else "",
        column_comments=described if persisted.get("columns") else {},
        properties=settings.properties,
        location_root=settings.location_root,
        keep_versions=settings.keep_versions,
        grace_hours=settings.grace_hours,
        file_format=settings.file_format,
        in_memory=settings.in_memory,
    )


def model_request(
    settings: ModelSettings, relation: BaseRelation, model: Mapping[str, Any], *, sensitive: bool
) -> BuildRequest:
    """Return what to build for a model, as ``build_request`` does.

    Raises:
        ConfigError: as ``build_request``; the message names the model.
    """
    try:
        return build_request(settings, relation, model, sensitive=sensitive)
    except ConfigError as exc:
        msg = f"Model {model_name(model)}: {exc}"
        raise ConfigError(msg) from exc


def check_reserved(model: Mapping[str, Any]) -> None:
    """Check that the name of a model, seed or snapshot is not reserved for what belongs to another one.

    Raises:
        ConfigError: it is.
    """
    try:
        check_name(TableName(str(model.get("schema")), str(model.get("alias") or model.get("name"))))
    except ZorderError as exc:
        msg = f"Model {model_name(model)}: {exc}"
        raise ConfigError(msg) from exc


def check_alias(model: Mapping[str, Any], settings: ModelSettings) -> None:
    """Check that a model's table can have its name, before a hook runs.

    Raises:
        ConfigError: it cannot.
    """
    if settings.file_format == "iceberg":  # whose catalogs have rules of their own
        return
    try:
        check_identifier(str(model["alias"]))
    except ConfigError as exc:
        msg = f"Model {model_name(model)}: {exc} Set it as the model's alias."
        raise ConfigError(msg) from exc


def snapshot_settings(model: Mapping[str, Any], df: DataFrame, columns: Mapping[str, str]) -> ModelSettings:
    """Return the settings of a snapshot that names no ``zorder_by``: it is built by versions all the same."""
    config = model["config"]
    sensitive = case_sensitive(df.sparkSession)
    partitions = {fold_case(name, sensitive=sensitive) for name in _listed(config.get("partition_by"))}
    key = [name for name in _listed(config.get("unique_key")) if fold_case(name, sensitive=sensitive) not in partitions]
    by = default_columns(df, key, columns["dbt_valid_from"])
    settings = ModelSettings.from_config(model_name(model), {**config, **_AS_SNAPSHOT, "zorder_by": by})
    assert settings is not None
    return settings


def kept_settings(model: Mapping[str, Any]) -> ModelSettings:
    """Return the settings that say where a model's versions lie and how long they are kept, whatever builds it by now.

    Of the others there is none: a snapshot is built by versions without ``zorder_by``, and a table may have been.
    """
    given = {key: model["config"].get(key) for key in _KEPT}
    settings = ModelSettings.from_config(model_name(model), {**given, "zorder_by": ["any"]})
    assert settings is not None
    return settings


def _listed(names: list[str] | str | None) -> list[str]:
    return [names] if isinstance(names, str) else names or []
