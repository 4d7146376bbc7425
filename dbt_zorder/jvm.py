"""Classes of the JVM behind a session that is in this process."""

from __future__ import annotations

from functools import lru_cache
from typing import Any


@lru_cache(maxsize=16)
def class_named(jvm: Any, name: str) -> Any:
    """Return a class of Hadoop's or Spark's own; the JVM is asked once for each part of its name, not at each use.

    A build opens dozens of files, and every pruned read looks at a folder.
    """
    found = jvm
    for part in name.split("."):
        found = getattr(found, part)
    return found


def table_identifier(jvm: Any, schema: str, identifier: str) -> Any:
    """Return a table's name as Spark's own catalog and Delta's log take it."""
    schema_of = class_named(jvm, "scala.Some")(schema)
    return class_named(jvm, "org.apache.spark.sql.catalyst.TableIdentifier")(identifier, schema_of)
