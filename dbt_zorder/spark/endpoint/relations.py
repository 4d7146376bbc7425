"""Write Spark Connect's plans as queries.

A plan is a tree of small steps. Steps are joined in one SELECT where SQL allows it: a hidden column such as
``_metadata``, and a table's alias, are not visible outside the SELECT that reads the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from dbt_zorder.spark.columns import fold_case
from dbt_zorder.spark.ddl import type_ddl
from dbt_zorder.spark.endpoint.expressions import name_of, order_sql, selected, to_sql, type_of
from dbt_zorder.spark.endpoint.local_rows import rows_sql
from dbt_zorder.spark.endpoint.unsupported import UnsupportedError
from dbt_zorder.spark.sql import quote_name
from dbt_zorder.spark.type_json import columns_from_json

_JOINS: Mapping[str, str] = {
    "JOIN_TYPE_INNER": "INNER JOIN",
    "JOIN_TYPE_FULL_OUTER": "FULL OUTER JOIN",
    "JOIN_TYPE_LEFT_OUTER": "LEFT OUTER JOIN",
    "JOIN_TYPE_RIGHT_OUTER": "RIGHT OUTER JOIN",
    "JOIN_TYPE_LEFT_ANTI": "LEFT ANTI JOIN",
    "JOIN_TYPE_LEFT_SEMI": "LEFT SEMI JOIN",
    "JOIN_TYPE_CROSS": "CROSS JOIN",
}
_SET_OPERATIONS: Mapping[str, str] = {
    "SET_OP_TYPE_UNION": "UNION",
    "SET_OP_TYPE_EXCEPT": "EXCEPT",
    "SET_OP_TYPE_INTERSECT": "INTERSECT",
}
_SEED_BITS = (1 << 63) - 1
_SLOT = "__zorder_slot"
_METADATA = "STRUCT<file_path: STRING, file_name: STRING, file_size: BIGINT, row_index: BIGINT>"
_NO_FILES = "UNABLE_TO_INFER_SCHEMA"


@dataclass(frozen=True)
class Query:
    """A query that further steps may still join.

    Attributes:
        source: what stands after FROM; empty for a query that is written whole.
        items: items of its SELECT; None for all columns.
        where: conditions, in order.
        text: the whole query, where it can take no further step.
    """

    source: str = ""
    items: Sequence[str] | None = None
    where: Sequence[str] = ()
    text: str = ""

    @property
    def is_plain(self) -> bool:
        """Return whether it selects all columns of its source, so that a step can still join it."""
        return bool(self.source) and self.items is None

    @property
    def sql(self) -> str:
        """Return the query as text."""
        return self.text or self.select(self.items or ("*",))

    def select(self, items: Iterable[str], hint: str = "") -> str:
        """Return the text of a SELECT of these items from a plain query."""
        where = f" WHERE {' AND '.join(self.where)}" if self.where else ""
        return f"SELECT {hint}{', '.join(items)} FROM {self.source}{where}"

    @property
    def item(self) -> str:
        """Return what stands for the query after another FROM."""
        return self.source if self.is_plain and not self.where else f"(\n{self.sql}\n)"

    def opened(self) -> Query:
        """Return a plain query of the same rows."""
        return self if self.is_plain else Query(self.item)


class Writer:
    """Writes plans as queries.

    Args:
        schema_of: function that returns the columns of a query, as the server gives them.
        sensitive: function that returns whether names differ by case.

    Attributes:
        kept: views of plans whose rows the server keeps, by the plan.
    """

    def __init__(self, schema_of: Callable[[str], StructType], sensitive: Callable[[], bool]) -> None:
        self._schema_of = schema_of
        self._sensitive = sensitive
        self.kept: dict[bytes, str] = {}

    def sql(self, relation: Any) -> str:
        """Return the query of a plan.

        Raises:
            UnsupportedError: a step of it has no form in SQL here.
        """
        return self._query(relation).sql

    def files_sql(self, relation: Any) -> str:
        """Return a query of the files that a plan's source has."""
        return self._plain(relation).select(["_metadata.file_path"], "DISTINCT ")

    def _query(self, relation: Any) -> Query:
        view = self.kept.get(relation.SerializeToString()) if self.kept else None
        if view is not None:
            return Query(view)
        kind = relation.WhichOneof("rel_type")
        step: Callable[[Any], Query] | None = getattr(self, f"_{kind}", None)
        if step is None:
            msg = f"A plan with the step '{kind}' cannot be written as SQL."
            raise UnsupportedError(msg)
        return step(getattr(relation, kind))

    def _plain(self, relation: Any) -> Query:
        return self._query(relation).opened()

    def _names(self, query: Query) -> list[str]:
        return list(self._schema_of(query.sql).names)

    def _is(self, one: str, other: str) -> bool:
        sensitive = self._sensitive()
        return fold_case(one, sensitive=sensitive) == fold_case(other, sensitive=sensitive)

    # sources

    def _sql(self, sql: Any) -> Query:
        if sql.args or sql.pos_args or sql.named_arguments or sql.pos_arguments:
            msg = "A query with parameters cannot be sent as text."
            raise UnsupportedError(msg)
        return Query(text=sql.query.strip().rstrip(";"))

    def _read(self, read: Any) -> Query:
        if read.WhichOneof("read_type") == "named_table":
            return Query(read.named_table.unparsed_identifier)
        source = read.data_source
        if len(source.paths) != 1:
            msg = "Only one path can be read at a time."
            raise UnsupportedError(msg)
        # The types of data columns are in the files, which Spark wrote. Those of partition columns are guessed from
        # names of folders. Statistics of such a column then have another type than the table, and exclude nothing.
        query = Query(f"{source.format}.{quote_name(source.paths[0])}")
        if source.schema:
            try:
                self._schema_of(query.sql)
            except AnalysisException as exc:
                if _NO_FILES not in str(exc):
                    raise
                return self._without_rows(source.schema)
        return query

    def _without_rows(self, schema: str) -> Query:
        """Return a query over a folder without files."""
        fields = [f"CAST(NULL AS {type_ddl(one.dataType)}) AS {quote_name(one.name)}" for one in _struct(schema)]
        return Query(f"(SELECT {', '.join([*fields, f'CAST(NULL AS {_METADATA}) AS _metadata'])} WHERE false)")

    def _range(self, numbers: Any) -> Query:
        parts = f", {numbers.num_partitions}" if numbers.HasField("num_partitions") else ""
        return Query(f"range({numbers.start}, {numbers.end}, {numbers.step}{parts})")

    def _local_relation(self, rows: Any) -> Query:
        return Query(text=rows_sql(*local_rows(rows)))

    # rows and columns

    def _filter(self, step: Any) -> Query:
        query = self._plain(step.input)
        return replace(query, where=[*query.where, to_sql(step.condition)])

    def _project(self, step: Any) -> Query:
        if not step.HasField("input"):
            return Query(text=f"SELECT {', '.join(map(selected, step.expressions))}")
        items = [selected(one) for one in step.expressions]
        return replace(self._plain(step.input), items=items or ["1 AS `1`"])

    def _with_columns(self, step: Any) -> Query:
        query = self._plain(step.input)
        added = {one.name[0]: f"{to_sql(one.expr)} AS {quote_name(one.name[0])}" for one in step.aliases}
        names = self._names(query)
        items = []
        for name in names:
            own = next((one for one in added if self._is(one, name)), None)
            items.append(quote_name(name) if own is None else added.pop(own))
        return replace(query, items=[*items, *added.values()])

    def _with_columns_renamed(self, step: Any) -> Query:
        renamed = {one.col_name: one.new_col_name for one in step.renames} or dict(step.rename_columns_map)
        query = self._plain(step.input)
        items = []
        for name in self._names(query):
            new = next((new for old, new in renamed.items() if self._is(old, name)), None)
            items.append(quote_name(name) if new is None else f"{quote_name(name)} AS {quote_name(new)}")
        return replace(query, items=items)

    def _drop(self, step: Any) -> Query:
        dropped = [*step.column_names, *filter(None, map(name_of, step.columns))]
        if len(dropped) != len(step.column_names) + len(step.columns):
            msg = "A dropped column has no name."
            raise UnsupportedError(msg)
        query = self._plain(step.input)
        kept = [name for name in self._names(query) if not any(self._is(name, one) for one in dropped)]
        return replace(query, items=[quote_name(name) for name in kept])

    def _to_df(self, step: Any) -> Query:
        names = ", ".join(quote_name(name) for name in step.column_names)
        return Query(f"{self._query(step.input).item} AS renamed({names})")

    def _to_schema(self, step: Any) -> Query:
        fields = type_of(step.schema)
        assert isinstance(fields, StructType)
        items = [
            f"CAST({quote_name(one.name)} AS {type_ddl(one.dataType)}) AS {quote_name(one.name)}" for one in fields
        ]
        return replace(self._plain(step.input), items=items)

    def _subquery_alias(self, step: Any) -> Query:
        return Query(f"{self._query(step.input).item} AS {quote_name(step.alias)}")

    def _hint(self, step: Any) -> Query:
        return self._query(step.input)  # a broadcast, which changes no row

    # rows together

    def _limit(self, step: Any) -> Query:
        query = self._query(step.input)
        return Query(text=f"{query.opened().sql} LIMIT {step.limit}")

    def _sample(self, step: Any) -> Query:
        if step.with_replacement or step.lower_bound:
            msg = "Only a plain sample can be drawn."
            raise UnsupportedError(msg)
        percent = f"{step.upper_bound * 100:.15f}"
        text = f"{self._query(step.input).item} TABLESAMPLE ({percent} PERCENT) REPEATABLE ({step.seed & _SEED_BITS})"
        return Query(text)

    def _sort(self, step: Any) -> Query:
        order = ", ".join(map(order_sql, step.order))
        clause = "ORDER BY" if step.is_global else "SORT BY"
        return Query(text=f"{self._plain(step.input).sql} {clause} {order}")

    def _deduplicate(self, step: Any) -> Query:
        if not step.all_columns_as_keys:
            msg = "Only whole rows can be made distinct."
            raise UnsupportedError(msg)
        return Query(text=self._plain(step.input).select(["*"], "DISTINCT "))

    def _aggregate(self, step: Any) -> Query:
        if step.GroupType.Name(step.group_type) != "GROUP_TYPE_GROUPBY" or step.HasField("pivot"):
            msg = "Only plain groups can be aggregated."
            raise UnsupportedError(msg)
        groups = list(step.grouping_expressions)
        # with retained grouping columns, Connect lists them again among the aggregates only if the user does
        text = self._plain(step.input).select(map(selected, [*groups, *step.aggregate_expressions]))
        return Query(text=f"{text} GROUP BY {', '.join(map(to_sql, groups))}" if groups else text)

    def _repartition(self, step: Any) -> Query:
        name = "REPARTITION" if step.shuffle else "COALESCE"
        return Query(text=self._plain(step.input).select(["*"], f"/*+ {name}({step.num_partitions}) */ "))

    def _repartition_by_expression(self, step: Any) -> Query:
        # a hint accepts columns alone, and an explicit number of partitions, which is not coalesced
        query = self._plain(step.input)
        names = self._names(query)
        slot = _SLOT
        while any(name.lower().startswith(slot) for name in names):
            slot += "_"
        slots = [f"{slot}{number}" for number in range(len(step.partition_exprs))]
        columns = [
            f"{to_sql(one)} AS {quote_name(slot)}" for one, slot in zip(step.partition_exprs, slots, strict=True)
        ]
        number = [str(step.num_partitions)] if step.HasField("num_partitions") else []
        hint = f"/*+ REPARTITION({', '.join([*number, *slots])}) */ "
        placed = query.select([*map(quote_name, names), *columns], hint)
        return Query(f"(\n{placed}\n)", [quote_name(name) for name in names])

    def _join(self, step: Any) -> Query:
        kind = _JOINS.get(step.JoinType.Name(step.join_type))
        if kind is None:
            msg = "A join of this kind cannot be written as SQL."
            raise UnsupportedError(msg)
        text = f"{self._query(step.left).item} {kind} {self._query(step.right).item}"
        if step.using_columns:
            return Query(f"{text} USING ({', '.join(map(quote_name, step.using_columns))})")
        return Query(f"{text} ON {to_sql(step.join_condition)}" if step.HasField("join_condition") else text)

    def _set_op(self, step: Any) -> Query:
        kind = _SET_OPERATIONS.get(step.SetOpType.Name(step.set_op_type))
        if kind is None or step.allow_missing_columns:
            msg = "Rows cannot be put together in this way by SQL."
            raise UnsupportedError(msg)
        left, right = self._query(step.left_input), self._query(step.right_input)
        if step.by_name:
            right = replace(right.opened(), items=[quote_name(name) for name in self._names(left)])
        return Query(text=f"({left.sql}\n) {kind}{' ALL' if step.is_all else ''} ({right.sql}\n)")


def local_rows(rows: Any) -> tuple[pa.Table, StructType]:
    """Return the rows of a local relation, and their columns."""
    given = _struct(rows.schema) if rows.schema else None
    if not rows.HasField("data"):
        assert given is not None
        return to_arrow_schema(given).empty_table(), given
    with pa.ipc.open_stream(rows.data) as stream:
        table = stream.read_all()
    return table, given or from_arrow_schema(table.schema, prefer_timestamp_ntz=True)


def _struct(schema: str) -> StructType:
    """Return the columns of a plan's schema, which PySpark writes as JSON."""
    return columns_from_json(schema, "a plan")
