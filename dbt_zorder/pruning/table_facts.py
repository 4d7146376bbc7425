"""What Spark says of a table: where its files lie, and what wrote them."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import SparkSession

from dbt_zorder.catalog import described
from dbt_zorder.columns import split_name
from dbt_zorder.sql import quote_name


@dataclass(frozen=True)
class TableFacts:
    """A table as ``DESCRIBE TABLE EXTENDED`` shows it; an empty string stands for what it does not say.

    Attributes:
        sql: the quoted name.
        location: folder of the data files, as Spark writes it.
        provider: format, such as ``parquet``.
        kind: ``MANAGED``, ``EXTERNAL`` or ``VIEW``.
        qualifiers: what may stand before a column of it.
    """

    sql: str
    location: str = ""
    provider: str = ""
    kind: str = ""
    qualifiers: tuple[tuple[str, ...], ...] = ()


def quoted(table: str) -> str:
    """Return ``db.t``, ```db`.`t``` or ``t`` with every part quoted."""
    return quote_name(*split_name(table.strip()))


def describe(spark: SparkSession, table: str) -> TableFacts:
    """Return the facts of a table or view; Spark's own error where there is none."""
    sql = quoted(table)
    _, details = described(spark, sql)
    parts = split_name(table.strip())
    full = tuple(part for part in (details.get("Catalog"), details.get("Database"), details.get("Table")) if part)
    names = full if len(full) == 3 and "Location" in details else tuple(parts)
    qualifiers = tuple(names[start:] for start in range(len(names)))
    return TableFacts(
        sql,
        details.get("Location", ""),
        details.get("Provider", "").lower(),
        details.get("Type", "").upper(),
        qualifiers,
    )
