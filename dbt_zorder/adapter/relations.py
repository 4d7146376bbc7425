"""Lists relations for dbt, and describes them: what Spark lists besides a project's tables stays out."""

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
"""Among the properties of a table that Hive's metastore keeps; of Iceberg's views it is another."""
_LISTINGS = 10
_PAUSE_SECONDS = 0.1


def list_all(
    schema: str | None, list_once: Callable[[], Sequence[BaseRelation]], has_tables: Callable[[], bool]
) -> list[BaseRelation]:
    """Return the relations of a schema; never an empty list because one table vanished while Spark described them.

    dbt-spark takes the error that Spark raises then for an empty schema.

    Args:
        schema: its name, for the message.
        list_once: lists the schema as dbt-spark does.
        has_tables: asks whether there are tables at all.

    Raises:
        DbtRuntimeError: the schema has tables, and Spark could not describe them in ten attempts.
    """
    for _ in range(_LISTINGS):
        found = [with_format(one) for one in list_once()]
        if found or not has_tables():
            return found
        time.sleep(_PAUSE_SECONDS)
    msg = (
        f"The schema {schema} holds tables, but Spark could not list them: each time one of them "
        "was gone before it was described. Run again when nothing else creates and drops tables there."
    )
    raise DbtRuntimeError(msg)


def restore_interrupted(spark: SparkSession, found: Sequence[BaseRelation]) -> bool:
    """Put back tables that an interrupted swap left aside; return whether the schema is to be listed again.

    Otherwise the model of such a table would begin from nothing. So would one whose table another run had aside just
    as Spark listed the schema.
    """
    aside = [one for one in found if one.schema and str(one.identifier).endswith(PREVIOUS_SUFFIX)]
    tables = [TableName(str(one.schema), str(one.identifier).removesuffix(PREVIOUS_SUFFIX)) for one in aside]
    put_back = [restore_if_interrupted(spark, table) for table in tables]
    listed = {str(one.identifier) for one in found}
    return any(put_back) or any(table.identifier not in listed for table in tables)


def users_own(found: Iterable[BaseRelation]) -> list[BaseRelation]:
    """Return relations without temporary views, our stats, and entries of a swap that is under way."""
    return [one for one in found if one.schema and not is_stats(one) and not is_of_swap(one)]


def described_columns(
    spark: SparkSession, relation: BaseRelation, rows: Sequence[dict[str, Any]]
) -> Iterable[dict[str, Any]]:
    """Return the rows of dbt's catalog for a relation with comments, and with the figures of a z-ordered table."""
    info = describe(spark, table_name(relation))
    if info is None:
        return rows
    comments: Mapping[str, str] = {name: comment for name, _, comment in info.columns}
    shared: dict[str, Any] = {"table_comment": info.comment or None}
    try:
        shared.update(table_stats(spark, table_name(relation), info))
    except ZorderError as exc:  # the catalog is worth having without them
        _LOG.debug(f"no figures of {relation} for the catalog: {exc}")
    return [{**row, **shared, "column_comment": comments.get(row["column_name"]) or None} for row in rows]


def with_format(relation: BaseRelation) -> BaseRelation:
    """Return a listed relation that knows whether it is of Iceberg.

    In the session's own catalog Spark lists such a table as one of Hive's, so that dbt-spark would refuse the second
    run of a snapshot, and drop a table that Iceberg replaces in one commit.
    """
    facts = str(getattr(relation, "information", ""))
    if relation.is_table and "\nProvider: hive\n" in facts and _ICEBERG.search(facts):
        return replace(relation, is_iceberg=True)  # type: ignore[call-arg]
    return relation


def is_stats(relation: BaseRelation) -> bool:
    """Tell whether a listed relation is the one over a table's stats, which dbt is to treat as part of the table."""
    name, facts = str(relation.identifier), str(getattr(relation, "information", ""))
    return name.endswith(STATS_SUFFIX) and f"/{STATS_DIRECTORY}" in facts


def is_of_swap(relation: BaseRelation) -> bool:
    """Tell whether a listed relation is an entry that a swap has made or moved aside, and has not yet dropped."""
    return str(relation.identifier).endswith((NEXT_SUFFIX, PREVIOUS_SUFFIX, FORMAT_SUFFIX))
