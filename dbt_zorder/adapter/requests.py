"""Build requests, made from a model's settings and its node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dbt.adapters.base import BaseRelation
from pyspark.sql import DataFrame

from dbt_zorder import option_parsers as values
from dbt_zorder.adapter.config import DELETE_INSERT, ModelSettings
from dbt_zorder.adapter.models.hooks import check_hooks
from dbt_zorder.adapter.names import model_name, table_name
from dbt_zorder.errors import ConfigError, ZorderError
from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableName
from dbt_zorder.spark.columns import case_sensitive, fold_case
from dbt_zorder.spark.plain_names import check_identifier
from dbt_zorder.spark.sql import quote_name
from dbt_zorder.tables.merge import STRATEGIES, Merge
from dbt_zorder.tables.parquet.snapshot import default_columns
from dbt_zorder.tables.reserved import check_name

_RETENTION_KEYS = ("zorder_keep_versions", "zorder_grace_hours", "location_root")
_FILE_KEYS = ("zorder_files", "zorder_file_size", "zorder_stats_columns")
_SNAPSHOT_OVERRIDES = {"zorder_skip": None, "zorder_weights": None}
"""Settings that a snapshot without ``zorder_by`` ignores. It is always built by versions, and clustered by its key.

No weights apply to that key. dbt-spark itself has no snapshots on Parquet."""


def checked_settings(model: Mapping[str, Any]) -> ModelSettings | None:
    """Return a model's checked settings, or None if dbt-spark's materialization builds it.

    Raises:
        ConfigError: a setting, a hook, the name or the alias of the model is not allowed.
    """
    check_reserved(model)
    settings = ModelSettings.from_config(model_name(model), model["config"])
    if settings is not None:
        check_hooks(model)
        check_alias(model, settings)
    return settings


def build_request(
    settings: ModelSettings, relation: BaseRelation, model: Mapping[str, Any], *, sensitive: bool = False
) -> BuildRequest:
    """Return the build request of a model, with the comments that its ``persist_docs`` selects.

    Args:
        settings: settings of the model.
        relation: relation of the model's table.
        model: node of the model.
        sensitive: whether the session that builds the table distinguishes column names by case.

    Raises:
        ConfigError: ``zorder_weights`` names a column that is not in ``zorder_by``, or names one twice.
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
            weights=values.optional(
                "zorder_weights", settings.weights, values.weights_in_order(settings.by, sensitive=sensitive), None
            ),
            curve=settings.curve,
            encoding=settings.encoding,
            page_rows=settings.page_rows,
            compression=settings.compression,
        ),
        stats_columns=settings.stats_columns,
        key_columns=as_list(model["config"].get("unique_key")) if merges(model) else (),
        bloom=settings.bloom,
        options=settings.options,
        comment=(model.get("description") or "") if persisted.get("relation") else "",
        column_comments=described if persisted.get("columns") else {},
        properties=settings.properties,
        location_root=settings.location_root,
        keep_versions=settings.keep_versions,
        grace_hours=settings.grace_hours,
        hash_index=settings.hash_index,
        file_format=settings.file_format,
        in_memory=settings.in_memory,
    )


def merge_settings(model: Mapping[str, Any], strategy: str) -> Merge | None:
    """Return how a model's batches are merged; None if its strategy only adds rows.

    Args:
        model: node of the model.
        strategy: its incremental strategy, with dbt-spark's default.

    Raises:
        ConfigError: a setting is not a column, a list of columns, or a list of conditions. The message names the model.
    """
    if strategy not in STRATEGIES:
        return None
    config = model["config"]

    def read(key: str, given: Any) -> list[str]:
        return values.optional(f"Model {model_name(model)}: {key}", given or None, values.text_list, [])

    keys = read("unique_key", config.get("unique_key"))
    return Merge(
        unique_key=[key.strip() for key in keys if key.strip()],
        update_columns=read("merge_update_columns", config.get("merge_update_columns")) or None,
        exclude_columns=read("merge_exclude_columns", config.get("merge_exclude_columns")),
        predicates=read("incremental_predicates", config.get("predicates") or config.get("incremental_predicates")),
        replaces_rows=strategy == DELETE_INSERT,
    )


def merges(model: Mapping[str, Any]) -> bool:
    """Return whether the model's batches are merged by a key."""
    config = model["config"]
    return config.get("materialized") == "incremental" and config.get("incremental_strategy") in STRATEGIES


def model_request(
    settings: ModelSettings, relation: BaseRelation, model: Mapping[str, Any], *, sensitive: bool
) -> BuildRequest:
    """Return the build request of a model, like ``build_request``, and name the model in errors.

    Raises:
        ConfigError: ``build_request`` raised. The message names the model.
    """
    try:
        return build_request(settings, relation, model, sensitive=sensitive)
    except ConfigError as exc:
        msg = f"Model {model_name(model)}: {exc}"
        raise ConfigError(msg) from exc


def check_reserved(model: Mapping[str, Any]) -> None:
    """Raise if the name of a model, seed or snapshot is reserved for a relation that belongs to another table.

    Raises:
        ConfigError: the name is reserved.
    """
    try:
        check_name(TableName(str(model.get("schema")), str(model.get("alias") or model.get("name"))))
    except ZorderError as exc:
        msg = f"Model {model_name(model)}: {exc}"
        raise ConfigError(msg) from exc


def check_alias(model: Mapping[str, Any], settings: ModelSettings) -> None:
    """Raise, before a hook runs, if a model's table cannot have its name.

    Raises:
        ConfigError: the alias is not allowed.
    """
    if settings.file_format == "iceberg":  # Iceberg's catalogs have rules of their own
        return
    try:
        check_identifier(str(model["alias"]))
    except ConfigError as exc:
        msg = f"Model {model_name(model)}: {exc} Set it as the model's alias."
        raise ConfigError(msg) from exc


def snapshot_settings(model: Mapping[str, Any], df: DataFrame, columns: Mapping[str, str]) -> ModelSettings:
    """Return the settings of a snapshot without ``zorder_by``, which is built by versions as well."""
    config = model["config"]
    sensitive = case_sensitive(df.sparkSession)
    partitions = {fold_case(name, sensitive=sensitive) for name in as_list(config.get("partition_by"))}
    key = [name for name in as_list(config.get("unique_key")) if fold_case(name, sensitive=sensitive) not in partitions]
    by = default_columns(df, key, columns["dbt_valid_from"])
    settings = ModelSettings.from_config(model_name(model), {**config, **_SNAPSHOT_OVERRIDES, "zorder_by": by})
    assert settings is not None
    return settings


def retention_settings(model: Mapping[str, Any]) -> ModelSettings:
    """Return the settings that locate a model's versions and set their retention, whatever builds the model now.

    Ignore all other settings. A snapshot without ``zorder_by`` has versions, and so may a table that had ``zorder_by``
    before.
    """
    return _settings_of(model, _RETENTION_KEYS)


def file_settings(model: Mapping[str, Any]) -> ModelSettings:
    """Return the settings of files and statistics, whatever builds the model now. Ignore all other settings."""
    return _settings_of(model, _FILE_KEYS)


def _settings_of(model: Mapping[str, Any], keys: Sequence[str]) -> ModelSettings:
    """Return a model's settings of the given keys, with the defaults of all others."""
    given = {key: model["config"].get(key) for key in keys}
    settings = ModelSettings.from_config(model_name(model), {**given, "zorder_by": ["any"]})
    assert settings is not None
    return settings


def as_list(names: list[str] | str | None) -> list[str]:
    """Return the columns that a config names, by one text or a list."""
    return [names] if isinstance(names, str) else names or []
