"""Parsers of config values, one per kind. A ``ValueError`` states the allowed values, as the end of a message."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeGuard, TypeVar

from dbt_zorder.engine.parquet.encodings import VERSION_OPTION, VERSIONS
from dbt_zorder.errors import ConfigError, did_you_mean
from dbt_zorder.layout.file_count import parse_size
from dbt_zorder.layout.hash_index import MOST_BUCKETS, HashIndex
from dbt_zorder.layout.page_order import PAGE_ROWS_OPTION, parse_page_rows
from dbt_zorder.layout.spec import MOST_COLUMNS, are_weights, is_count
from dbt_zorder.spark.columns import fold_case, split_name
from dbt_zorder.spark.plain_names import pattern_characters

_MOST_IN_MEMORY = 512 << 20
"""Maximum size in bytes. An Arrow column can contain four times as much, but the size of rows is an estimate."""

MOST_HOURS = 1_000_000
"""Maximum grace period. It exceeds a century, and much larger values would lead to dates that do not exist."""

_RESERVED = {
    "location": "use location_root",
    "provider": "use file_format",
    **dict.fromkeys(("owner", "external", "is_managed_location", "collation", "table_type"), "leave it out"),
}
"""Table properties that Spark's CREATE TABLE refuses, and the alternative to each."""

AUTO = "auto"
"""Value that leaves the number of buckets to a build."""

T = TypeVar("T")
U = TypeVar("U")


def read(name: str, value: object, parse: Callable[[Any], T]) -> T:
    """Parse the value of a config.

    Raises:
        ConfigError: the value is not allowed. The message names the config, the value and the allowed values.
    """
    try:
        return parse(value)
    except ValueError as exc:
        msg = f"{name} is {value!r}, but {exc}"
        raise ConfigError(msg) from exc


def optional(name: str, value: object, parse: Callable[[Any], T], default: U) -> T | U:
    """Parse the value of an optional config, or return the default for None. Raise like ``read``."""
    return default if value is None else read(name, value, parse)


def page_rows(options: Mapping[str, str]) -> int | None:
    """Return the maximum number of rows in a Parquet page, or None if the writer's options do not set it."""
    return parse_page_rows(options.get(PAGE_ROWS_OPTION, ""))


def compression(options: Mapping[str, str]) -> str | None:
    """Return the compression codec, or None if the options do not set it. Spark reads option names in any case."""
    return next((value for name, value in options.items() if name.lower() == "compression"), None)


def columns(value: Any) -> tuple[str, ...]:
    """Return 1 to 8 column names, and raise ValueError for any other number."""
    names = column_names(value)
    if not names:
        msg = (
            "an empty list orders nothing: name 1 to 8 columns, or leave it out; where it is inherited, set it to "
            "null, or zorder_skip to true."
        )
        raise ValueError(msg)
    if len(names) > MOST_COLUMNS:
        msg = f"at most {MOST_COLUMNS} columns can share a curve, and {len(names)} are given."
        raise ValueError(msg)
    return names


def column_names(value: Any) -> tuple[str, ...]:
    """Return column names without repetition. Names that differ by case alone pass; the session decides about them."""
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) and name.strip() for name in names):
        msg = "it must be a column name or a list of column names."
        raise ValueError(msg)
    for number, name in enumerate(names):
        if name in names[:number]:
            msg = f"'{name}' is in it twice."
            raise ValueError(msg)
    return tuple(names)


def text(value: Any) -> str:
    """Return a text, and raise ValueError for any other value."""
    if not isinstance(value, str):
        msg = "it must be a text."
        raise ValueError(msg)
    return value


def text_list(value: Any) -> list[str]:
    """Return a text or a list of texts as a list, and raise ValueError for any other value."""
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, (list, tuple)) or not all(isinstance(one, str) for one in listed):
        msg = "it must be a text or a list of texts."
        raise ValueError(msg)
    return list(listed)


def folder(value: Any) -> str:
    """Return the path of a folder, and raise ValueError for characters that Spark reads as a pattern."""
    if not isinstance(value, str):
        msg = "it must be the path or URI of a folder."
        raise ValueError(msg)
    odd = pattern_characters(value)
    if odd:
        msg = f"Spark reads a path with any of [ {{ * ? \\ in it as a pattern: leave out {odd}"
        raise ValueError(msg)
    return value


def texts(value: Any) -> dict[str, str]:
    """Return a mapping with its values as texts, without those that are null. Null unsets an inherited value."""
    if not isinstance(value, Mapping):
        msg = "it must be a mapping of names to values."
        raise ValueError(msg)
    for name, text in value.items():
        if isinstance(text, (Mapping, list, tuple)):
            msg = f"'{name}' has {text!r} where one text or number belongs."
            raise ValueError(msg)
    return {
        str(name): str(text).lower() if isinstance(text, bool) else str(text)
        for name, text in value.items()
        if text is not None
    }


def properties(value: Any) -> dict[str, str]:
    """Return table properties, and raise ValueError for those that Spark reserves."""
    found = texts(value)
    for name in found:
        if name in _RESERVED or name.startswith("spark.sql."):
            hint = _RESERVED.get(name, "leave it out")
            msg = f"Spark keeps '{name}' to itself, and lets no table have such a property: {hint}."
            raise ValueError(msg)
    return found


def options(value: Any) -> dict[str, str]:
    """Return the options of Spark's writer, and raise ValueError for a wrong page size or writer version."""
    found = texts(value)
    if PAGE_ROWS_OPTION in found and parse_page_rows(found[PAGE_ROWS_OPTION]) is None:
        msg = f"'{PAGE_ROWS_OPTION}' must be a positive whole number."
        raise ValueError(msg)
    if found.get(VERSION_OPTION, "v1") not in VERSIONS:
        hint = did_you_mean(found[VERSION_OPTION], VERSIONS)
        msg = f"'{VERSION_OPTION}' must be one of {', '.join(map(repr, VERSIONS))}.{hint}"
        raise ValueError(msg)
    return found


def one_of(*allowed: str) -> Callable[[Any], str]:
    """Return a parser that accepts only the given texts."""

    def parse(value: Any) -> str:
        if value not in allowed:
            hint = did_you_mean(str(value), allowed)
            msg = f"only {', '.join(repr(name) for name in allowed)} is allowed.{hint}"
            raise ValueError(msg)
        return str(value)

    return parse


def boolean(value: Any) -> bool:
    """Return a boolean, and raise ValueError for any other value."""
    if not isinstance(value, bool):
        msg = "it must be true or false."
        raise ValueError(msg)
    return value


def whole_number(value: Any) -> int:
    """Return a whole number from 0, and raise ValueError for any other value."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        msg = "it must be a whole number, 0 or more."
        raise ValueError(msg)
    return value


def positive_integer(value: Any) -> int:
    """Return a whole number from 1, and raise ValueError for any other value."""
    if not is_count(value):
        msg = "it must be a whole number, 1 or more."
        raise ValueError(msg)
    return int(value)


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def share(value: Any) -> float:
    """Return a share from 0 to 1, and raise ValueError for any other value."""
    if not (_is_number(value) and 0 <= value <= 1):
        msg = "it must be a share, 0 to 1."
        raise ValueError(msg)
    return float(value)


def from_one(value: Any) -> float:
    """Return a number from 1, and raise ValueError for any other value."""
    if not (_is_number(value) and 1 <= value < math.inf):
        msg = "it must be a number, 1 or more."
        raise ValueError(msg)
    return float(value)


def positive(value: Any) -> float:
    """Return a number above 0, and raise ValueError for any other value."""
    if not (_is_number(value) and 0 < value < math.inf):
        msg = "it must be a number above 0."
        raise ValueError(msg)
    return float(value)


def size(value: Any) -> int:
    """Return a number of bytes, and raise ValueError for any other value."""
    try:
        found = parse_size(value)
    except ConfigError:
        found = None
    if found is None:
        msg = "it must be a number of bytes from 1000, or a text like '64MB' or '1TB'."
        raise ValueError(msg)
    return found


def buckets(value: Any) -> int | str:
    """Return a number of buckets, or ``auto``; raise ValueError for any other value."""
    if value == AUTO:
        return AUTO
    if not is_count(value) or not 2 <= value <= MOST_BUCKETS:
        hint = did_you_mean(value, (AUTO,)) if isinstance(value, str) else ""
        msg = f"it must be '{AUTO}', or a whole number from 2 to {MOST_BUCKETS:,}.{hint}"
        raise ValueError(msg)
    return int(value)


def hash_index(owner: str, key: tuple[str, ...], number: int | str | None) -> HashIndex | None:
    """Return the hash index of a key and a result of ``buckets``, None without both.

    Raises:
        ConfigError: one is given without the other. The message begins with ``owner``.
    """
    if not key and number is None:
        return None
    if not key or number is None:
        given, missing = ("clustered_by", "buckets") if key else ("buckets", "clustered_by")
        msg = f"{owner}{given} is set without {missing}; a hash index needs both."
        raise ConfigError(msg)
    return HashIndex(key, number if isinstance(number, int) else None)


def are_hours(value: object) -> bool:
    """Return whether a value is a grace period: a number of hours from 0 to ``MOST_HOURS``."""
    return _is_number(value) and 0 <= value <= MOST_HOURS


def hours(value: Any) -> float:
    """Return a grace period in hours, and raise ValueError for any other value."""
    if not are_hours(value):
        msg = f"it must be a number of hours, 0 to {MOST_HOURS:,}."
        raise ValueError(msg)
    return float(value)


def file_size(value: Any) -> str | int:
    """Return a file size unchanged, and raise ValueError if it cannot be parsed."""
    try:
        parse_size(value)
    except ConfigError as exc:
        _, meant, size = str(exc).partition(" Did you mean")
        msg = f"it must be 'auto', a number of bytes from 1000, or a text like '64MB' or '1GB'.{meant}{size}"
        raise ValueError(msg) from exc
    return value  # type: ignore[no-any-return]


def memory(value: Any) -> int:
    """Return a memory size in bytes. ``never`` gives 0."""
    if value == "never" or (value == 0 and not isinstance(value, bool)):
        return 0
    try:
        found = parse_size(value)
    except ConfigError:
        found = None
    if found is None or found > _MOST_IN_MEMORY:
        msg = "it must be 'never', a number of bytes from 1000, or a text like '64MB', at most 512 MB."
        raise ValueError(msg)
    return found


def weights(by: Sequence[str]) -> Callable[[Any], tuple[float, ...] | dict[str, float]]:
    """Return a parser of weights: one positive number per column in order, or numbers by column name in any case."""

    def parse(value: Any) -> tuple[float, ...] | dict[str, float]:
        if isinstance(value, Mapping):
            for name in value:
                _positions(name, by, sensitive=False)
        given = [*value.values()] if isinstance(value, Mapping) else value
        if not are_weights(given, len(given) if isinstance(value, Mapping) else len(by)):
            msg = f"it must be {len(by)} positive numbers, one a column of zorder_by, or numbers by column name."
            raise ValueError(msg)
        return dict(value) if isinstance(value, Mapping) else tuple(float(w) for w in given)

    return parse


def weights_in_order(by: Sequence[str], *, sensitive: bool) -> Callable[[Any], tuple[float, ...]]:
    """Return a parser of weights that gives one number per column, and resolves names by the session's rule for case.

    A column without a weight gets 1.
    """

    def parse(value: Any) -> tuple[float, ...]:
        read = weights(by)(value)
        if not isinstance(read, Mapping):
            return read
        found: dict[int, float] = {}
        for name, weight in read.items():
            for position in _positions(name, by, sensitive=sensitive):
                if position in found:
                    msg = f"'{by[position]}' is in it twice."
                    raise ValueError(msg)
                found[position] = float(weight)
        return tuple(found.get(position, 1.0) for position in range(len(by)))

    return parse


def _positions(name: object, by: Sequence[str], *, sensitive: bool) -> list[int]:
    """Return the positions of a column in ``zorder_by``. Another check reports a repeated column.

    Raises:
        ValueError: the column is not in ``zorder_by``.
    """

    def parts(one: object) -> list[str]:
        return [fold_case(part, sensitive=sensitive) for part in split_name(str(one))]

    positions = [position for position, one in enumerate(by) if parts(one) == parts(name)]
    if not positions:
        msg = f"'{name}' is not in zorder_by.{did_you_mean(str(name), by)}"
        raise ValueError(msg)
    return positions
