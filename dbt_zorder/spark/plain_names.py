"""Check that Spark and its metastore accept names and folders for a table, before a build starts."""

from __future__ import annotations

import re
import unicodedata

from pyspark.sql import SparkSession

from dbt_zorder.errors import ConfigError
from dbt_zorder.spark.files import has_client, open_path
from dbt_zorder.spark.messages import in_one_line

MOST_CHARACTERS = 229
"""Maximum length of a table's name. Hive's metastore allows 256 characters, and our own suffixes need up to 27."""

_PLAIN = re.compile(r"\w+", re.ASCII)
_PATTERN = re.compile(r"[\[{*?\\]")
"""Characters that make Spark read a table's location as a glob pattern, which may not match the folder itself."""


def check_identifier(identifier: str) -> None:
    """Raise if a table cannot have this name.

    Raises:
        ConfigError: the name is not valid; the message suggests the nearest valid name.
    """
    if _PLAIN.fullmatch(identifier) and len(identifier) <= MOST_CHARACTERS:
        return
    nearest = nearest_identifier(identifier)
    hint = f" '{nearest}' would do." if nearest else ""
    shown = identifier if len(identifier) <= MOST_CHARACTERS else f"{identifier[:40]}... ({len(identifier)} characters)"
    msg = (
        f"'{shown}' is no name for a table: it may have letters, digits and underscores of ASCII, and "
        f"at most {MOST_CHARACTERS} characters.{hint}"
    )
    raise ConfigError(msg)


def nearest_identifier(identifier: str) -> str:
    """Return the valid table name most similar to this one; empty if no character of it is valid."""
    without_accents = unicodedata.normalize("NFKD", identifier).encode("ascii", "ignore").decode()
    return re.sub(r"\W+", "_", without_accents, flags=re.ASCII).strip("_")[:MOST_CHARACTERS]


def pattern_characters(path: str) -> str:
    """Return the characters that make Spark read a path as a glob pattern, ready for a message; empty if none do."""
    return " ".join(dict.fromkeys(_PATTERN.findall(path)))


def check_folder(spark: SparkSession, path: str) -> None:
    """Raise if a table cannot be read from a folder.

    Raises:
        ConfigError: Spark would write the table there and then not find it, or has no file system for the folder.
    """
    odd = pattern_characters(path)
    if odd:
        msg = (
            f"The folder of its versions would be {path}, which has {odd} in it: Spark reads the location of a table "
            "as a pattern then. Set location_root to a folder without any of [ { * ? \\ in its path."
        )
        raise ConfigError(msg)
    if not has_client(spark):
        return
    try:
        open_path(spark, path)
    except Exception as exc:
        msg = (
            f"The folder of its versions would be {path}, which Spark cannot open: {in_one_line(exc)}. Look at the "
            "model's location_root, or at the location of its schema."
        )
        raise ConfigError(msg) from exc
