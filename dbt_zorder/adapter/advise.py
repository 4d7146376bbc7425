"""Advice on the columns to cluster a table by, for the queries of a dbt project that read it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from dbt_zorder import option_parsers as values
from dbt_zorder.adapter.names import existing_name
from dbt_zorder.adapter.readers import Readers
from dbt_zorder.adapter.requests import as_list, file_settings
from dbt_zorder.advice.advice import advise
from dbt_zorder.advice.condition import Scan
from dbt_zorder.advice.sampling import Asked, sample_reads
from dbt_zorder.advice.workload import Reader, TableKey, UnreadError
from dbt_zorder.errors import ConfigError, ZorderError, did_you_mean
from dbt_zorder.layout.spec import are_weights
from dbt_zorder.spark.catalog import TableName, describe
from dbt_zorder.spark.messages import unlogged
from dbt_zorder.spark.sql import quote_name


def advise_on_table(
    spark: SparkSession,
    table: TableName,
    node: Mapping[str, Any] | None,
    readers: Readers,
    queries: Sequence[str],
    weights: Mapping[str, float],
) -> dict[str, Any]:
    """Return advice on the columns to cluster a table by. ``text`` is the advice for printing.

    Args:
        spark: the session.
        table: the table.
        node: the node that builds it; None if no node does.
        readers: the queries of the project that read the table.
        queries: further queries, or predicates on its columns.
        weights: how often nodes run in comparison with others, by name; 1 where it is missing.

    Raises:
        ZorderError: the table does not exist, or is a view.
        ConfigError: an argument or a setting of the model is not allowed.
    """
    info = describe(spark, existing_name(spark, table))
    if info is None or info.is_view:
        msg = f"zorder_advise: {table} is a view, which has no files. Ask about a table that it reads."
        raise ZorderError(msg)
    given = values.read("zorder_advise: queries", queries, values.text_list)
    check_weights(weights, list(readers.queries))
    asked = {**readers.queries, **{f"query {number}": sql for number, sql in enumerate(given, start=1)}}
    reader = Reader(
        (table.schema.lower(), table.identifier.lower()),
        table_columns(spark, table.sql),
        _Columns(spark),
        readers.views,
    )
    scans: list[Scan] = []
    unread = list(readers.failed)
    for name, sql in asked.items():
        try:
            scans += reader.read(name, sql, weights.get(name, 1.0))
        except UnreadError as exc:
            unread.append(f"{name}: {exc}")
    settings = file_settings(node) if node is not None else None
    files = Asked(settings.files, settings.file_size, settings.stats_columns) if settings is not None else Asked()
    sampled, reads = sample_reads(spark, table.sql, scans, files)
    config = node["config"] if node is not None else {}
    advice = advise(str(table), sampled, reads, by=as_list(config.get("zorder_by")), unread=unread)
    return {**advice.to_dict(), "text": str(advice)}


def check_weights(weights: object, names: Sequence[str]) -> None:
    """Raise unless ``weights`` are positive numbers by the names of queries.

    Raises:
        ConfigError: they are not. The message names the nearest node.
    """
    if not isinstance(weights, Mapping) or not are_weights(list(weights.values()), len(weights)):
        msg = f"zorder_advise: weights is {weights!r}, but it must be positive numbers by name, such as {{orders: 24}}."
        raise ConfigError(msg)
    for name in weights:
        if name not in names:
            msg = (
                f"zorder_advise: weights has '{name}', but no query of that name reads the table."
                f"{did_you_mean(str(name), names)} There are: {', '.join(sorted(names)) or 'none'}."
            )
            raise ConfigError(msg)


class _Columns:
    """Function that returns the columns of a table by its key, and asks Spark once for each."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._found: dict[TableKey, Mapping[str, str]] = {}

    def __call__(self, key: TableKey) -> Mapping[str, str]:
        if key not in self._found:
            try:
                with unlogged():
                    self._found[key] = table_columns(self._spark, quote_name(*key))
            except Exception:  # a table that is not built yet
                self._found[key] = {}
        return self._found[key]


def table_columns(spark: SparkSession, name: str) -> dict[str, str]:
    """Return the columns of a table for a parser of SQL, which needs to look into structs alone."""
    return {
        field.name: field.dataType.simpleString() if isinstance(field.dataType, StructType) else "string"
        for field in spark.table(name).schema.fields
    }
