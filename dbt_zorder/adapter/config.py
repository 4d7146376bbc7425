"""Reader and checks of a model's ``zorder_*`` configs.

dbt itself checks none of them. It uses an adapter's config class only to merge values (dbt-core #10306).
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dbt.adapters.spark.impl import SparkConfig

from dbt_zorder import option_parsers as values
from dbt_zorder.errors import ConfigError, did_you_mean
from dbt_zorder.layout.curves import CURVES, ENCODINGS, setting_without_effect
from dbt_zorder.layout.hash_index import HashIndex
from dbt_zorder.request import IN_MEMORY
from dbt_zorder.stats.table_state import FORMATS
from dbt_zorder.tables.lakehouse.rewrite import NATIVE


@dataclass
class ZorderConfig(SparkConfig):
    """Names of the model configs that this adapter adds to dbt-spark's. ``ModelSettings`` checks their values."""

    zorder_by: list[str] | str | None = None
    zorder_curve: str | None = None
    zorder_encoding: str | None = None
    zorder_file_size: str | int | None = None
    zorder_files: int | None = None
    zorder_weights: list[float] | dict[str, float] | None = None
    zorder_bloom: list[str] | str | None = None
    zorder_keep_versions: int | None = None
    zorder_grace_hours: float | None = None
    zorder_stats_columns: list[str] | str | None = None
    zorder_optimize: str | None = None
    zorder_in_memory: str | int | None = None
    zorder_skip: bool | None = None


STRATEGIES = ("append", "insert_overwrite", "microbatch", "merge")
"""Incremental strategies that every format supports."""

DELETE_INSERT = "delete+insert"
"""Incremental strategy that only Parquet supports."""

KEYS = tuple(name for name in ZorderConfig.__dataclass_fields__ if name.startswith("zorder_"))


@dataclass(frozen=True)
class ModelSettings:
    """The checked settings of one model. Attributes are named like the configs without their prefix.

    See docs/reference/model-configs.md for their meaning.
    """

    by: tuple[str, ...]
    curve: str
    encoding: str
    files: int | None
    file_size: str | int
    weights: tuple[float, ...] | Mapping[str, float] | None
    bloom: tuple[str, ...]
    keep_versions: int
    grace_hours: float
    stats_columns: tuple[str, ...]
    optimize: str
    in_memory: int
    partition_by: tuple[str, ...]
    options: Mapping[str, str]
    properties: Mapping[str, str]
    location_root: str | None
    hash_index: HashIndex | None
    file_format: str

    @property
    def page_rows(self) -> int | None:
        """The maximum number of rows in a Parquet page, if the model's ``options`` set it."""
        return values.page_rows(self.options)

    @property
    def compression(self) -> str | None:
        """The compression codec of the files, if the model's ``options`` set it."""
        return values.compression(self.options)

    @classmethod
    def from_config(cls, model: str, config: Mapping[str, Any]) -> ModelSettings | None:
        """Read a model's config. Return None if dbt-spark's materialization builds the model.

        Args:
            model: name of the model in messages.
            config: the model's whole config, including keys of other packages.

        Raises:
            ConfigError: a key or value is not allowed. The message names the model, the key, the value, the allowed
                values and the nearest valid name.
        """
        _check_names(model, config)
        reader = _Reader(model, config)
        skip = reader.read("zorder_skip", values.boolean, False)
        by = reader.read("zorder_by", values.columns, ())
        own = {
            "curve": reader.read("zorder_curve", values.one_of(*CURVES), CURVES[0]),
            "encoding": reader.read("zorder_encoding", values.one_of(*ENCODINGS), ENCODINGS[0]),
            "files": reader.read("zorder_files", values.positive_integer, None),
            "file_size": reader.read("zorder_file_size", values.file_size, "auto"),
            "weights": reader.read("zorder_weights", values.weights(by), None) if by else None,
            "bloom": reader.read("zorder_bloom", values.column_names, ()),
            "keep_versions": reader.read("zorder_keep_versions", values.whole_number, 2),
            "grace_hours": reader.read("zorder_grace_hours", values.hours, 24.0),
            "stats_columns": reader.read("zorder_stats_columns", values.column_names, ()),
            "optimize": reader.read("zorder_optimize", values.one_of("auto", "never", NATIVE), "auto"),
            "in_memory": reader.read("zorder_in_memory", values.memory, IN_MEMORY),
        }
        _check_curve(model, own, by)
        # the checks above apply even to settings without effect; without zorder_by, dbt-spark checks the rest
        if skip or not by:
            return None
        partition_by = reader.read("partition_by", values.column_names, ())
        file_format = _check_format(model, config)
        _check_strategy(model, config, file_format)
        _check_partitions(model, by, partition_by)
        return cls(
            by=by,
            hash_index=_hash_index(model, config, reader, file_format),
            partition_by=partition_by,
            options=reader.read("options", values.options, {}),
            properties=reader.read("tblproperties", values.properties, {}),
            location_root=reader.read("location_root", values.folder, None),
            file_format=file_format,
            **own,
        )


class _Reader:
    """Reads single keys of a config. Errors name the model and the key."""

    def __init__(self, model: str, config: Mapping[str, Any]) -> None:
        self._model = model
        self._config = config

    def read(self, key: str, parse: Callable[[Any], Any], default: Any) -> Any:
        return values.optional(f"Model {self._model}: {key}", self._config.get(key), parse, default)


def _check_names(model: str, config: Mapping[str, Any]) -> None:
    for key in config:
        if key in KEYS:
            continue
        # dbt silently accepts misspelled prefixes ('zoder_by') as well as misspelled names ('zorder_bye')
        if key.startswith("zorder_") or (key[:1] == "z" and difflib.get_close_matches(key, KEYS, n=1, cutoff=0.8)):
            msg = f"Model {model}: there is no config '{key}'.{did_you_mean(key, KEYS)} There are: {', '.join(KEYS)}."
            raise ConfigError(msg)


def _check_curve(model: str, own: Mapping[str, Any], by: Sequence[str]) -> None:
    curve = own["curve"]
    idle = setting_without_effect(curve, own["encoding"], weighted=own["weights"] is not None, columns=len(by))
    if idle is not None:
        name = f"{idle} 'bits'" if idle == "encoding" else idle
        msg = f"Model {model}: zorder_{name} has no effect with zorder_curve '{curve}': leave out one of the two."
        raise ConfigError(msg)


def _check_format(model: str, config: Mapping[str, Any]) -> str:
    """Return the file format of a z-ordered table, and raise for an unsupported one."""
    file_format = str(config.get("file_format") or "parquet").lower()
    if file_format not in ("parquet", *FORMATS):
        msg = (
            f"Model {model}: zorder_by needs file_format 'parquet', its default, 'delta' or 'iceberg', and file_format "
            f"is {config.get('file_format')!r}.{did_you_mean(file_format, ('parquet', *FORMATS))} "
            "Else leave out one of the two, or set zorder_skip: true."
        )
        raise ConfigError(msg)
    if config.get("zorder_optimize") == NATIVE and file_format == "parquet":
        msg = (
            f"Model {model}: zorder_optimize is 'native', which is a command of Delta or Iceberg, and file_format is "
            "'parquet': leave it out, or set it to 'auto' or 'never'."
        )
        raise ConfigError(msg)
    return file_format


def _hash_index(model: str, config: Mapping[str, Any], reader: _Reader, file_format: str) -> HashIndex | None:
    """Return the hash index that dbt-spark's own ``clustered_by`` and ``buckets`` ask for, None without them.

    dbt-spark ignores each of the two without the other.
    """
    key = reader.read("clustered_by", values.column_names, ())
    buckets = reader.read("buckets", values.buckets, None)
    index = values.hash_index(f"Model {model}: ", key, buckets)
    if index is not None and file_format != "parquet":
        msg = (
            f"Model {model}: clustered_by makes Spark's buckets, which file_format {file_format!r} does not have; "
            "leave it out, or use 'parquet'."
        )
        raise ConfigError(msg)
    return index


def _check_strategy(model: str, config: Mapping[str, Any], file_format: str) -> None:
    """Raise if a format lacks the strategy. dbt-spark's own message suggests Hudi, which does not support zorder_by."""
    strategy = config.get("incremental_strategy")
    if config.get("materialized") != "incremental" or strategy is None:
        return
    allowed = (*STRATEGIES, DELETE_INSERT) if file_format == "parquet" else STRATEGIES
    if strategy not in allowed:
        instead = ", which is for file_format 'parquet'" if strategy == DELETE_INSERT else ""
        names = ", ".join(repr(name) for name in allowed)
        msg = (
            f"Model {model}: incremental_strategy is {strategy!r}{instead}; with file_format {file_format!r} it can be "
            f"{names}.{did_you_mean(str(strategy), allowed)}"
        )
        raise ConfigError(msg)


def _check_partitions(model: str, by: Sequence[str], partition_by: Sequence[str]) -> None:
    # ``keys_for`` compares names by the session's rule for upper and lower case; only exact matches are found here
    for column in by:
        if column in partition_by:
            msg = (
                f"Model {model}: zorder_by has '{column}', which is a partition column. The files of a partition all "
                "hold one value of it, so leave it out of zorder_by."
            )
            raise ConfigError(msg)
