"""What the adapter tells of tables: comments, the catalog of ``dbt docs``, what dbt lists, and ``dbt debug``."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from dbt.adapters.base import BaseRelation, available
from dbt.adapters.events.logging import AdapterLogger
from dbt.adapters.spark.impl import LIST_RELATIONS_SHOW_TABLES_MACRO_NAME
from dbt_common.events.functions import fire_event
from dbt_common.events.types import Note
from dbt_common.exceptions import DbtRuntimeError

from dbt_zorder.adapter.messages.catalog_stats import table_stats
from dbt_zorder.adapter.messages.debug import check_up
from dbt_zorder.adapter.messages.logs import warn
from dbt_zorder.adapter.messages.spark_errors import short_message
from dbt_zorder.adapter.models.in_process import InProcessAdapter
from dbt_zorder.adapter.names import table_name
from dbt_zorder.errors import ZorderError
from dbt_zorder.spark.catalog import FORMAT_SUFFIX, NEXT_SUFFIX, PREVIOUS_SUFFIX, TableName, describe
from dbt_zorder.spark.columns import case_sensitive
from dbt_zorder.spark.sql import quote_string
from dbt_zorder.stats.schema import STATS_DIRECTORY, STATS_SUFFIX
from dbt_zorder.tables.parquet.comments import documented, set_comments
from dbt_zorder.tables.parquet.two_step_swap import bring_back

_LOG = AdapterLogger("Zorder")
_ICEBERG = re.compile(r"^Table Properties: .*\btable_type=ICEBERG[,\]]", re.MULTILINE)
"""Among the properties of a table that Hive's metastore keeps; of Iceberg's views it is another."""
_LISTINGS = 10
_PAUSE_SECONDS = 0.1


class DocumentedAdapter(InProcessAdapter):
    """dbt-spark's adapter, with descriptions and figures of Parquet tables."""

    def debug_query(self) -> None:
        """Try the connection for ``dbt debug``, and over a session the writing and pruning of a small table."""
        super().debug_query()
        if self.zorder_in_session():
            try:
                check_up(self.session, self.config.credentials.schema, lambda line: fire_event(Note(msg=f"  {line}")))
            except ZorderError as exc:
                raise DbtRuntimeError(str(exc)) from exc

    @available.parse_none
    def zorder_comment(
        self, relation: BaseRelation, comment: str | None, columns: Mapping[str, Mapping[str, Any]]
    ) -> None:
        """Give a table and its columns the comments of a model's properties, where they have others."""
        if self.zorder_in_session() and (comment is not None or columns):
            table = table_name(relation)
            try:
                names = self.session.table(table.sql).columns
                wanted = documented(columns, names, sensitive=case_sensitive(self.session))
                set_comments(self.session, table, comment, wanted)
            except Exception as exc:  # the rows are in: a run that failed now would add them again
                warn(f"{relation} is built, but not all of its comments could be set: {short_message(exc)}")

    @available.parse_list
    def zorder_columns_of(self, sql: str) -> list[str]:
        """Return the names of a query's columns, which is not run."""
        with self.connections.exception_handler(sql):
            return self.session.sql(sql).columns

    @available.parse(lambda *_, **__: {})
    def zorder_documented(self, columns: Mapping[str, Mapping[str, Any]], names: list[str]) -> dict[str, str]:
        """Return the descriptions of columns, by the names that a query gives them."""
        sensitive = self.zorder_in_session() and case_sensitive(self.session)
        return documented(columns, names, sensitive=sensitive)

    @available.parse(lambda *_, **__: "")
    def zorder_quote(self, text: str) -> str:
        """Return a text as a literal of Spark's."""
        return quote_string(text)

    def list_relations_without_caching(self, schema_relation: BaseRelation) -> list[BaseRelation]:
        """Return the tables and views of a schema, without what Spark lists besides: temporary views, and our stats.

        A table that a swap cut short has left aside is put back first, or its model would begin from nothing. So would
        one that a swap of another run had aside just as Spark listed the schema.
        """
        found = self._list_whole(schema_relation)
        aside = [one for one in found if one.schema and str(one.identifier).endswith(PREVIOUS_SUFFIX)]
        if aside and self.zorder_in_session():
            tables = [TableName(str(one.schema), str(one.identifier).removesuffix(PREVIOUS_SUFFIX)) for one in aside]
            put_back = [bring_back(self.session, table) for table in tables]
            listed = {str(one.identifier) for one in found}
            if any(put_back) or any(table.identifier not in listed for table in tables):
                found = self._list_whole(schema_relation)
        return [one for one in found if one.schema and not is_stats(one) and not is_of_swap(one)]

    def _list_whole(self, schema_relation: BaseRelation) -> list[BaseRelation]:
        """Return what a schema holds; never nothing because one table vanished while Spark described them all.

        dbt-spark takes the error that Spark raises then for an empty schema.

        Raises:
            DbtRuntimeError: the schema holds tables, and time and again they could not be described.
        """
        for _ in range(_LISTINGS):
            found = [with_format(one) for one in super().list_relations_without_caching(schema_relation)]
            if found or not self._has_tables(schema_relation):
                return found
            time.sleep(_PAUSE_SECONDS)
        msg = (
            f"The schema {schema_relation.schema} holds tables, but Spark could not list them: each time one of them "
            "was gone before it was described. Run again when nothing else creates and drops tables there."
        )
        raise DbtRuntimeError(msg)

    def _has_tables(self, schema_relation: BaseRelation) -> bool:
        try:
            rows = self.execute_macro(
                LIST_RELATIONS_SHOW_TABLES_MACRO_NAME, kwargs={"schema_relation": schema_relation}
            )
        except DbtRuntimeError:  # there is no such schema
            return False
        return any(row[0] for row in rows)  # a temporary view is in none

    def _get_columns_for_catalog(self, relation: BaseRelation) -> Iterable[dict[str, Any]]:
        """Return a relation's columns for dbt's catalog: with comments, and with the figures of a z-ordered table."""
        rows = list(super()._get_columns_for_catalog(relation))
        info = describe(self.session, table_name(relation)) if self.zorder_in_session() else None
        if info is None:
            return rows
        comments = {name: comment for name, _, comment in info.columns}
        shared: dict[str, Any] = {"table_comment": info.comment or None}
        try:
            shared.update(table_stats(self.session, table_name(relation), info))
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
