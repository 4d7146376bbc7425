"""How the value of each kind of config is read; a ``ValueError`` says what is allowed, as the end of a message."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from dbt_zorder.engine.parquet.encodings import VERSION_OPTION, VERSIONS
from dbt_zorder.errors import ConfigError, did_you_mean
from dbt_zorder.layout.file_count import parse_size
from dbt_zorder.layout.page_order import PAGE_ROWS_OPTION, parse_page_rows
from dbt_zorder.layout.spec import MOST_COLUMNS, are_weights, is_count
from dbt_zorder.spark.columns import fold_case, split_name
from dbt_zorder.spark.plain_names import pattern_characters

_MOST_IN_MEMORY = 512 << 20
"""A column of Arrow's holds four times as much, and what rows weigh is a guess; see ``layout.few``."""

MOST_HOURS = 1_000_000
"""More than a century; dates that lie much further back than that there are none."""

_RESERVED = {
    "location": "use location_root",
    "provider": "use file_format",
    **dict.fromkeys(("owner", "external", "is_managed_location", "collation", "table_type"), "leave it out"),
}
"""Table properties that Spark's CREATE TABLE refuses, and what is to be done in their place."""


T = TypeVar("T")
U = TypeVar("U")


def read(name: str, value: object, parse: Callable[[Any], T]) -> T:
    """Read a value.

    Raises:
        ConfigError: naming it, what was given, and what is allowed.
    """
    try:
        return parse(value)
    except ValueError as exc:
        msg = f"{name} is {value!r}, but {exc}"
        raise ConfigError(msg) from exc


def given(name: str, value: object, parse: Callable[[Any], T], default: U) -> T | U:
    """Read the same of a value that need not be given."""
    return default if value is None else read(name, value, parse)


def page_rows(options: Mapping[str, str]) -> int | None:
    """Return the rows of a Parquet page at most, where options of Spark's writer say so."""
    return parse_page_rows(options.get(PAGE_ROWS_OPTION, ""))


def compression(options: Mapping[str, str]) -> str | None:
    """Return the codec of the files, where options say so; Spark reads their names in any case."""
    return next((value for name, value in options.items() if name.lower() == "compression"), None)


def columns(value: Any) -> tuple[str, ...]:
    """Return 1 to 8 columns."""
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
    """Return column names, of which none is there twice; whether case distinguishes them is for the session to say."""
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
    """Return a text."""
    if not isinstance(value, str):
        msg = "it must be a text."
        raise ValueError(msg)
    return value


def folder(value: Any) -> str:
    """Return the path of a folder."""
    if not isinstance(value, str):
        msg = "it must be the path or URI of a folder."
        raise ValueError(msg)
    odd = pattern_characters(value)
    if odd:
        msg = f"Spark reads a path with any of [ {{ * ? \\ in it as a pattern: leave out {odd}"
        raise ValueError(msg)
    return value


def texts(value: Any) -> dict[str, str]:
    """Return a mapping of texts, without those that are null: so one is unset that is inherited."""
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
    """Return table properties, none of which Spark keeps to itself."""
    found = texts(value)
    for name in found:
        if name in _RESERVED or name.startswith("spark.sql."):
            hint = _RESERVED.get(name, "leave it out")
            msg = f"Spark keeps '{name}' to itself, and lets no table have such a property: {hint}."
            raise ValueError(msg)
    return found


def options(value: Any) -> dict[str, str]:
    """Return options of Spark's writer."""
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
    """Return what reads one of some texts."""

    def parse(value: Any) -> str:
        if value not in allowed:
            hint = did_you_mean(str(value), allowed)
            msg = f"only {', '.join(repr(name) for name in allowed)} is allowed.{hint}"
            raise ValueError(msg)
        return str(value)

    return parse


def boolean(value: Any) -> bool:
    """Return true or false."""
    if not isinstance(value, bool):
        msg = "it must be true or false."
        raise ValueError(msg)
    return value


def whole_number(value: Any) -> int:
    """Return a whole number, 0 or more."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        msg = "it must be a whole number, 0 or more."
        raise ValueError(msg)
    return value


def positive_integer(value: Any) -> int:
    """Return a whole number, 1 or more."""
    if not is_count(value):
        msg = "it must be a whole number, 1 or more."
        raise ValueError(msg)
    return int(value)


def are_hours(value: object) -> bool:
    """Tell whether a value can be a grace period."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= MOST_HOURS


def hours(value: Any) -> float:
    """Return a grace period."""
    if not are_hours(value):
        msg = f"it must be a number of hours, 0 to {MOST_HOURS:,}."
        raise ValueError(msg)
    return float(value)


def file_size(value: Any) -> str | int:
    """Return the size of a file, as it was given."""
    try:
        parse_size(value)
    except ConfigError as exc:
        _, meant, size = str(exc).partition(" Did you mean")
        msg = f"it must be 'auto', a number of bytes from 1000, or a text like '64MB' or '1GB'.{meant}{size}"
        raise ValueError(msg) from exc
    return value  # type: ignore[no-any-return]


def memory(value: Any) -> int:
    """Return bytes of memory, 0 for none of it."""
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
    """Return what reads one positive number a column, in their order, or by names that are those in any case."""

    def parse(value: Any) -> tuple[float, ...] | dict[str, float]:
        if isinstance(value, Mapping):
            for name in value:
                _places(name, by, sensitive=False)
        given = [*value.values()] if isinstance(value, Mapping) else value
        if not are_weights(given, len(given) if isinstance(value, Mapping) else len(by)):
            msg = f"it must be {len(by)} positive numbers, one a column of zorder_by, or numbers by column name."
            raise ValueError(msg)
        return dict(value) if isinstance(value, Mapping) else tuple(float(w) for w in given)

    return parse


def weights_in_order(by: Sequence[str], *, sensitive: bool) -> Callable[[Any], tuple[float, ...]]:
    """Return what reads the same into one number a column, by the session's rule for names."""

    def parse(value: Any) -> tuple[float, ...]:
        read = weights(by)(value)
        if not isinstance(read, Mapping):
            return read
        found: dict[int, float] = {}
        for name, weight in read.items():
            for place in _places(name, by, sensitive=sensitive):
                if place in found:
                    msg = f"'{by[place]}' is in it twice."
                    raise ValueError(msg)
                found[place] = float(weight)
        return tuple(found.get(place, 1.0) for place in range(len(by)))

    return parse


def _places(name: object, by: Sequence[str], *, sensitive: bool) -> list[int]:
    """Return where a column is named in ``zorder_by``; more than once if it is there twice, an error of its own."""

    def parts(one: object) -> list[str]:
        return [fold_case(part, sensitive=sensitive) for part in split_name(str(one))]

    places = [place for place, one in enumerate(by) if parts(one) == parts(name)]
    if not places:
        msg = f"'{name}' is not in zorder_by.{did_you_mean(str(name), by)}"
        raise ValueError(msg)
    return places
