"""The ``zorder_*`` configs of a model: read, checked and turned into what a build needs.

dbt itself checks none of them: an adapter's config class only tells it how to merge values (dbt-core #10306).
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dbt.adapters.spark.impl import SparkConfig

from dbt_zorder.errors import ConfigError, did_you_mean
from dbt_zorder.formats.optimize import NATIVE
from dbt_zorder.layout.curve_plan import CURVES, ENCODINGS, idle_setting
from dbt_zorder.layout.plan import MOST_COLUMNS, PAGE_ROWS_OPTION, are_weights, is_count, parse_page_rows
from dbt_zorder.layout.sizing import parse_size
from dbt_zorder.stats.formats import FORMATS
from dbt_zorder.table.collect import MOST_HOURS, are_hours


@dataclass
class ZorderConfig(SparkConfig):
    """Names of the model configs that this adapter knows besides dbt-spark's; ``ModelSettings`` checks their values."""

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
    zorder_skip: bool | None = None


KEYS = tuple(name for name in ZorderConfig.__dataclass_fields__ if name.startswith("zorder_"))


_RESERVED = {
    "location": "use location_root",
    "provider": "use file_format",
    **dict.fromkeys(("owner", "external", "is_managed_location", "collation", "table_type"), "leave it out"),
}
"""Table properties that Spark's CREATE TABLE refuses, and what is to be done in their place."""


@dataclass(frozen=True)
class ModelSettings:
    """The checked settings of one model. Attributes are the configs without their prefix; see README.md."""

    by: tuple[str, ...]
    curve: str
    encoding: str
    files: int | None
    file_size: str | int
    weights: tuple[float, ...] | None
    bloom: tuple[str, ...]
    keep_versions: int
    grace_hours: float
    stats_columns: tuple[str, ...]
    optimize: str
    partition_by: tuple[str, ...]
    options: Mapping[str, str]
    properties: Mapping[str, str]
    location_root: str | None
    file_format: str

    @property
    def page_rows(self) -> int | None:
        """Rows of a Parquet page at most, where the model's ``options`` say so."""
        return parse_page_rows(self.options.get(PAGE_ROWS_OPTION, ""))

    @property
    def compression(self) -> str | None:
        """Codec of the files, where the model's ``options`` say so; Spark reads their names in any case."""
        return next((value for name, value in self.options.items() if name.lower() == "compression"), None)

    @classmethod
    def from_config(cls, model: str, config: Mapping[str, Any]) -> ModelSettings | None:
        """Read a model's config; None if the model is to be built as dbt-spark builds it.

        Args:
            model: what messages call the model.
            config: all of the model's config, also keys that nobody knows.

        Raises:
            ConfigError: naming the model, the key, the value, what is allowed and the nearest right name.
        """
        _check_names(model, config)
        reader = _Reader(model, config)
        skip = reader.read("zorder_skip", _boolean, False)
        by = reader.read("zorder_by", _columns, ())
        own = {
            "curve": reader.read("zorder_curve", _one_of(*CURVES), CURVES[0]),
            "encoding": reader.read("zorder_encoding", _one_of(*ENCODINGS), ENCODINGS[0]),
            "files": reader.read("zorder_files", _positive_integer, None),
            "file_size": reader.read("zorder_file_size", _file_size, "auto"),
            "weights": reader.read("zorder_weights", _weights(by), None) if by else None,
            "bloom": reader.read("zorder_bloom", _names, ()),
            "keep_versions": reader.read("zorder_keep_versions", _whole_number, 2),
            "grace_hours": reader.read("zorder_grace_hours", _hours, 24.0),
            "stats_columns": reader.read("zorder_stats_columns", _names, ()),
            "optimize": reader.read("zorder_optimize", _one_of("auto", "never", NATIVE), "auto"),
        }
        _check_curve(model, own, by)
        # a mistake is one even where it has no effect; what follows is dbt-spark's business without zorder_by
        if skip or not by:
            return None
        partition_by = reader.read("partition_by", _names, ())
        file_format = _check_format(model, config)
        _check_partitions(model, by, partition_by)
        return cls(
            by=by,
            partition_by=partition_by,
            options=reader.read("options", _options, {}),
            properties=reader.read("tblproperties", _properties, {}),
            location_root=reader.read("location_root", _folder, None),
            file_format=file_format,
            **own,
        )


class _Reader:
    """Reads one key after another, and says which model and key a bad value stands in."""

    def __init__(self, model: str, config: Mapping[str, Any]) -> None:
        self._model = model
        self._config = config

    def read(self, key: str, parse: Callable[[Any], Any], default: Any) -> Any:
        value = self._config.get(key)
        if value is None:
            return default
        try:
            return parse(value)
        except ValueError as exc:
            msg = f"Model {self._model}: {key} is {value!r}, but {exc}"
            raise ConfigError(msg) from exc


def _check_names(model: str, config: Mapping[str, Any]) -> None:
    for key in config:
        if key in KEYS:
            continue
        # 'zoder_by' is as silent a mistake as 'zorder_bye'
        if key.startswith("zorder_") or (key[:1] == "z" and difflib.get_close_matches(key, KEYS, n=1, cutoff=0.8)):
            msg = f"Model {model}: there is no config '{key}'.{did_you_mean(key, KEYS)} Known are: {', '.join(KEYS)}."
            raise ConfigError(msg)


def _check_curve(model: str, own: Mapping[str, Any], by: Sequence[str]) -> None:
    curve = own["curve"]
    idle = idle_setting(curve, own["encoding"], weighted=own["weights"] is not None, columns=len(by))
    if idle is not None:
        name = f"{idle} 'bits'" if idle == "encoding" else idle
        msg = f"Model {model}: zorder_{name} has no effect with zorder_curve '{curve}': leave out one of the two."
        raise ConfigError(msg)


def _check_format(model: str, config: Mapping[str, Any]) -> str:
    """Return the file format, one that z-ordered tables can have."""
    file_format = str(config.get("file_format") or "parquet").lower()
    if file_format not in ("parquet", *FORMATS):
        msg = (
            f"Model {model}: zorder_by needs file_format 'parquet', its default, 'delta' or 'iceberg', and "
            f"file_format is {config.get('file_format')!r}. Leave out one of the two, or set zorder_skip: true."
        )
        raise ConfigError(msg)
    if config.get("zorder_optimize") == NATIVE and file_format == "parquet":
        msg = (
            f"Model {model}: zorder_optimize is 'native', which is a command of Delta or Iceberg, and file_format is "
            "'parquet': leave it out, or set it to 'auto' or 'never'."
        )
        raise ConfigError(msg)
    if config.get("clustered_by") is not None:
        msg = f"Model {model}: clustered_by makes buckets, which cut z-ordered files apart; leave out one of the two."
        raise ConfigError(msg)
    return file_format


def _check_partitions(model: str, by: Sequence[str], partition_by: Sequence[str]) -> None:
    partitions = {name.lower() for name in partition_by}
    for column in by:
        if column.lower() in partitions:
            msg = (
                f"Model {model}: zorder_by has '{column}', which is a partition column. The files of a partition all "
                "hold one value of it, so leave it out of zorder_by."
            )
            raise ConfigError(msg)


def _columns(value: Any) -> tuple[str, ...]:
    names = _names(value)
    if not names:
        msg = "an empty list orders nothing: name 1 to 8 columns, or leave it out."
        raise ValueError(msg)
    if len(names) > MOST_COLUMNS:
        msg = f"at most {MOST_COLUMNS} columns can share a curve, and {len(names)} are given."
        raise ValueError(msg)
    return names


def _names(value: Any) -> tuple[str, ...]:
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) and name.strip() for name in names):
        msg = "it must be a column name or a list of column names."
        raise ValueError(msg)
    seen: set[str] = set()
    for name in names:
        if name.lower() in seen:
            msg = f"'{name}' is in it twice."
            raise ValueError(msg)
        seen.add(name.lower())
    return tuple(names)


def _folder(value: Any) -> str:
    if not isinstance(value, str):
        msg = "it must be the path or URI of a folder."
        raise ValueError(msg)
    return value


def _texts(value: Any) -> dict[str, str]:
    if not isinstance(value, Mapping):
        msg = "it must be a mapping of names to values."
        raise ValueError(msg)
    return {str(name): str(text) for name, text in value.items()}


def _properties(value: Any) -> dict[str, str]:
    found = _texts(value)
    for name in found:
        if name in _RESERVED or name.startswith("spark.sql."):
            hint = _RESERVED.get(name, "leave it out")
            msg = f"Spark keeps '{name}' to itself, and lets no table have such a property: {hint}."
            raise ValueError(msg)
    return found


def _options(value: Any) -> dict[str, str]:
    found = _texts(value)
    if PAGE_ROWS_OPTION in found and parse_page_rows(found[PAGE_ROWS_OPTION]) is None:
        msg = f"'{PAGE_ROWS_OPTION}' must be a positive whole number."
        raise ValueError(msg)
    return found


def _one_of(*allowed: str) -> Callable[[Any], str]:
    def parse(value: Any) -> str:
        if value not in allowed:
            hint = did_you_mean(str(value), allowed)
            msg = f"only {', '.join(repr(name) for name in allowed)} is allowed.{hint}"
            raise ValueError(msg)
        return str(value)

    return parse


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        msg = "it must be true or false."
        raise ValueError(msg)
    return value


def _whole_number(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        msg = "it must be a whole number, 0 or more."
        raise ValueError(msg)
    return value


def _positive_integer(value: Any) -> int:
    if not is_count(value):
        msg = "it must be a whole number, 1 or more."
        raise ValueError(msg)
    return int(value)


def _hours(value: Any) -> float:
    if not are_hours(value):
        msg = f"it must be a number of hours, 0 to {MOST_HOURS:,}."
        raise ValueError(msg)
    return float(value)


def _file_size(value: Any) -> str | int:
    try:
        parse_size(value)
    except ConfigError as exc:
        msg = "it must be 'auto', a number of bytes, or a text like '64MB' or '1GB'."
        raise ValueError(msg) from exc
    return value  # type: ignore[no-any-return]


def _weights(by: Sequence[str]) -> Callable[[Any], tuple[float, ...]]:
    def parse(value: Any) -> tuple[float, ...]:
        if isinstance(value, Mapping):
            unknown = [name for name in value if name not in by]
            if unknown:
                msg = f"'{unknown[0]}' is not in zorder_by.{did_you_mean(str(unknown[0]), by)}"
                raise ValueError(msg)
            value = [value.get(name, 1) for name in by]
        if not are_weights(value, len(by)):
            msg = f"it must be {len(by)} positive numbers, one a column of zorder_by, or numbers by column name."
            raise ValueError(msg)
        return tuple(float(w) for w in value)

    return parse
