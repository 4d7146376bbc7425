"""Listing and description of relations for dbt. Internal relations that Spark lists too are left out."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dbt.adapters.base import BaseRelation
from dbt.adapters.events.logging import AdapterLogger
from dbt_common.exceptions import DbtRuntimeError
from pyspark.sql import SparkSession

from dbt_zorder.adapter.messages.catalog_stats import table_stats
from dbt_zorder.adapter.names import table_name
from dbt_zorder.errors import ZorderError
from dbt_zorder.spark.catalog import FORMAT_SUFFIX, NEXT_SUFFIX, PREVIOUS_SUFFIX, TableName, describe
from dbt_zorder.stats.schema import STATS_DIRECTORY, STATS_SUFFIX
from dbt_zorder.tables.two_step_swap import restore_if_interrupted

_LOG = AdapterLogger("Zorder")
_ICEBERG = re.compile(r"^Table Properties: .*\btable_type=ICEBERG[,\]]", re.MULTILINE)
"""Marks an Iceberg table in the properties that Hive's metastore stores. Iceberg's views have another value."""
_LISTINGS = 10
_PAUSE_SECONDS = 0.1


def list_all(
    schema: str | None, list_once: Callable[[], Sequence[BaseRelation]], has_tables: Callable[[], bool]
) -> list[BaseRelation]:
    """Return the relations of a schema. Retry if one of them vanishes while Spark describes them.

    Spark raises an error in that case, and dbt-spark would treat the schema as empty.

    Args:
        schema: name of the schema, for the message.
        list_once: a function that lists the schema once, as dbt-spark does.
        has_tables: a function that returns whether the schema has any tables.

    Raises:
        DbtRuntimeError: the schema has tables, and Spark could not describe them in ten attempts.
    """
    for _ in range(_LISTINGS):
        relations = [with_format(one) for one in list_once()]
        if relations or not has_tables():
            return relations
        time.sleep(_PAUSE_SECONDS)
    msg = (
        f"The schema {schema} holds tables, but Spark could not list them: each time one of them "
        "was gone before it was described. Run again when nothing else creates and drops tables there."
    )
    raise DbtRuntimeError(msg)


def restore_interrupted(spark: SparkSession, relations: Sequence[BaseRelation]) -> bool:
    """Restore tables that an interrupted swap moved away, and return whether to list the schema again.

    Without this, the model of such a table would start with a first run. The same applies if another run was swapping
    the table at the moment of the listing.
    """
    moved = [one for one in relations if one.schema and str(one.identifier).endswith(PREVIOUS_SUFFIX)]
    tables = [TableName(str(one.schema), str(one.identifier).removesuffix(PREVIOUS_SUFFIX)) for one in moved]
    restored = [restore_if_interrupted(spark, table) for table in tables]
    listed = {str(one.identifier) for one in relations}
    return any(restored) or any(table.identifier not in listed for table in tables)


def without_internal(relations: Iterable[BaseRelation]) -> list[BaseRelation]:
    """Return the relations without temporary views, stats tables, and entries of a running swap."""
    return [one for one in relations if one.schema and not is_stats(one) and not is_swap_entry(one)]


def described_columns(
    spark: SparkSession, relation: BaseRelation, rows: Sequence[dict[str, Any]]
) -> Iterable[dict[str, Any]]:
    """Return the rows of dbt's catalog for a relation, with comments, and with the stats of a z-ordered table."""
    info = describe(spark, table_name(relation))
    if info is None:
        return rows
    comments: Mapping[str, str] = {name: comment for name, _, comment in info.columns}
    shared: dict[str, Any] = {"table_comment": info.comment or None}
    try:
        shared.update(table_stats(spark, table_name(relation), info))
    except ZorderError as exc:  # the catalog is useful without them
        _LOG.debug(f"no figures of {relation} for the catalog: {exc}")
    return [{**row, **shared, "column_comment": comments.get(row["column_name"]) or None} for row in rows]


def with_format(relation: BaseRelation) -> BaseRelation:
    """Return a listed relation with ``is_iceberg`` set if it is an Iceberg table.

    In the session's own catalog Spark lists Iceberg tables as Hive tables. dbt-spark would then refuse a snapshot's
    second run. It would also drop a table that Iceberg can replace in one commit.
    """
    facts = str(getattr(relation, "information", ""))
    if relation.is_table and "\nProvider: hive\n" in facts and _ICEBERG.search(facts):
        return replace(relation, is_iceberg=True)  # type: ignore[call-arg]
    return relation


def is_stats(relation: BaseRelation) -> bool:
    """Return whether a listed relation is a stats table, which dbt must treat as part of its data table."""
    name, facts = str(relation.identifier), str(getattr(relation, "information", ""))
    return name.endswith(STATS_SUFFIX) and f"/{STATS_DIRECTORY}" in facts


def is_swap_entry(relation: BaseRelation) -> bool:
    """Return whether a listed relation is a temporary entry of a swap that has not dropped it yet."""
    return str(relation.identifier).endswith((NEXT_SUFFIX, PREVIOUS_SUFFIX, FORMAT_SUFFIX))
