"""Read from SQL what queries ask of one table: filters, keys of joins with filtered tables, and needed columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.pushdown_predicates import pushdown_predicates
from sqlglot.optimizer.pushdown_projections import pushdown_projections
from sqlglot.optimizer.qualify import qualify
from sqlglot.optimizer.scope import Scope, traverse_scope

from dbt_zorder.advice.condition import Comparison, Condition, Either, Every, Lookup, Scan

_DIALECT = "spark"
_MOST_NODES = 20_000
"""Limit on the nodes of a query whose views and CTEs are written out: a CTE may name another one twice, and so on."""

Expr = Any
"""A node of sqlglot's tree; the name of its base class differs between versions."""

Columns = Mapping[str, str]
"""Type of each column of a table, by name."""

TableKey = tuple[str, str]
"""Schema and name of a table, in lower case."""

_COMPARISONS: dict[type[Expr], str] = {
    exp.EQ: "=",
    exp.NullSafeEQ: "=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_FLIPPED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_UNITS = {"MM": "MONTH", "MON": "MONTH", "YY": "YEAR", "YYYY": "YEAR", "QUARTER": "3 MONTH", "DD": "DAY"}
"""Other names of units of time, as an interval has them."""
_OUTER = ("LEFT", "ANTI")
"""Joins whose conditions leave out rows of the right side alone."""


class UnreadError(Exception):
    """A query cannot be read. The message says why."""


@dataclass(frozen=True)
class Reader:
    """Reader of queries on one table.

    Attributes:
        table: the table.
        columns: its columns.
        columns_of: function that returns the columns of another table; empty if they cannot be found.
        views: SQL text of views, which queries may read in place of the table.
    """

    table: TableKey
    columns: Columns
    columns_of: Callable[[TableKey], Columns] = lambda _: {}
    views: Mapping[TableKey, str] = field(default_factory=dict)

    def read(self, name: str, sql: str, weight: float = 1.0) -> list[Scan]:
        """Return the scans of the table in a query.

        Args:
            name: name of the query.
            sql: a query, or a predicate on the table's columns.
            weight: how often the query runs, in comparison with the others.

        Raises:
            UnreadError: the query is no SQL that sqlglot understands, or is too large.
        """
        try:
            tree = self._tree(sql)
            if not any(_key(table) == self.table for table in tree.find_all(exp.Table)):
                return []
            return [
                Scan(name, *self._scan(scope, alias), weight)
                for scope in traverse_scope(self._optimized(tree))
                for alias, node in scope.references
                if isinstance(node, exp.Table) and _key(node) == self.table
            ]
        except (SqlglotError, RecursionError, ValueError, AttributeError, KeyError, TypeError) as exc:
            # sqlglot's optimizer is no stable interface, and meets SQL of any kind here
            raise UnreadError(str(exc).partition("\n")[0] or type(exc).__name__) from exc

    def _tree(self, sql: str) -> Expr:
        try:
            tree: Expr = sqlglot.parse_one(sql, dialect=_DIALECT)
        except SqlglotError:
            tree = None
        if not isinstance(tree, exp.Query):
            everything = exp.select("*").from_(exp.table_(self.table[1], db=self.table[0]))
            tree = everything.where(sqlglot.parse_one(f"({sql})", dialect=_DIALECT))
        tree = self._written_out(tree, {})
        _check_size(tree)
        return tree

    def _written_out(self, tree: Expr, outer: Mapping[str, Expr]) -> Expr:
        """Return a query with every CTE and view in the place of its name."""
        names = dict(outer)
        for with_ in [value for value in tree.args.values() if isinstance(value, exp.With)]:
            if with_.recursive:
                msg = "it is recursive"
                raise UnreadError(msg)
            with_.pop()
            for cte in with_.expressions:
                names[cte.alias.lower()] = (self._written_out(cte.this, names), cte.args["alias"])
                _check_size(cte.this)
        if isinstance(tree, exp.Table):
            found = names.get(tree.name.lower()) if not tree.db else None
            view = self.views.get(_key(tree))
            if found is None and view is not None:
                found = (self._written_out(sqlglot.parse_one(view, dialect=_DIALECT), {}), None)
            return tree if found is None else _in_place(tree, *found)
        for child in list(tree.iter_expressions()):
            written = self._written_out(child, names)
            if written is not child:
                child.replace(written)
        return tree

    def _optimized(self, tree: Expr) -> Expr:
        """Return a query whose columns have their tables, and whose filters stand at the tables as far as they can."""
        schema: dict[str, Any] = {}
        for table in tree.find_all(exp.Table):
            key = _key(table)
            if key[0]:
                found = self.columns if key == self.table else self.columns_of(key)
                if found:
                    schema.setdefault(key[0], {})[key[1]] = found
        qualified = qualify(
            tree,
            schema=schema,
            dialect=_DIALECT,
            validate_qualify_columns=False,
            allow_partial_qualification=True,
            quote_identifiers=False,
        )
        return pushdown_predicates(pushdown_projections(qualified), dialect=_DIALECT)

    def _scan(self, scope: Scope, alias: str) -> tuple[frozenset[str], Condition | None]:
        used = {column.name.lower() for column in scope.source_columns(alias)}
        if scope.expression.is_star:
            used |= {name.lower() for name in self.columns}
        asked = _Asked(self, scope, alias)
        columns = frozenset(name for name in self.columns if name.lower() in used)
        return columns, asked.condition()


@dataclass(frozen=True)
class _Asked:
    """What one SELECT asks of one of its tables."""

    reader: Reader
    scope: Scope
    alias: str

    def condition(self) -> Condition | None:
        found = [self._condition(term) for term in self._terms(self.alias)]
        return _every([*found, *self._lookups()])

    def _terms(self, alias: str) -> list[Expr]:
        """Return the tests that leave out rows of a table before it is joined."""
        select = self.scope.expression
        where = select.args.get("where")
        terms = _conjuncts(where.this) if where is not None else []
        joined = [(join, join.alias_or_name) for join in select.args.get("joins") or ()]
        for place, (join, name) in enumerate(joined):
            side, after = f"{join.side} {join.kind}".upper(), [other for _, other in joined[place + 1 :]]
            right = name == alias
            if "FULL" in side or alias in after:
                continue
            outer = "SEMI" not in side and any(word in side for word in _OUTER)
            if (outer and not right) or ("RIGHT" in side and right):
                continue
            terms += _conjuncts(join.args.get("on"))
        return terms

    def _condition(self, e: Expr) -> Condition | None:
        """Return what a test asks of the table's rows; None if it cannot leave out a file."""
        if isinstance(e, exp.Paren):
            return self._condition(e.this)
        if isinstance(e, exp.And):
            return _every([self._condition(term) for term in _conjuncts(e)])
        if isinstance(e, exp.Or):
            return _either([self._condition(e.this), self._condition(e.expression)])
        if isinstance(e, exp.Column):
            return self._compared(e, "=", (exp.true(),))
        if isinstance(e, exp.Not):
            return self._compared(e.this, "=", (exp.false(),)) if isinstance(e.this, exp.Column) else None
        if type(e) in _COMPARISONS:
            op = _COMPARISONS[type(e)]
            return self._compared(e.this, op, (e.expression,)) or self._compared(e.expression, _FLIPPED[op], (e.this,))
        if isinstance(e, exp.Between):
            low, high = self._compared(e.this, ">=", (e.args["low"],)), self._compared(e.this, "<=", (e.args["high"],))
            return _every([low, high])
        if isinstance(e, exp.In):
            query = e.args.get("query")
            if query is None:
                return self._compared(e.this, "=", e.expressions) if e.expressions else None
            return self._lookup(e.this, query.this if isinstance(query, exp.Subquery) else query)
        if isinstance(e, exp.Is):
            column = self._column(e.this)
            return Comparison(column, "null") if column and isinstance(e.expression, exp.Null) else None
        if isinstance(e, exp.Like) and isinstance(e.expression, exp.Literal):
            prefix, column = re.split(r"[_%\\\\]", str(e.expression.this))[0], self._column(e.this)
            if not column or not prefix or e.args.get("negate"):
                return None
            return Comparison(column, "prefix", (_sql(exp.Literal.string(prefix)),))
        return None

    def _compared(self, operand: Expr, op: str, values: Sequence[Expr]) -> Condition | None:
        if not all(self._is_constant(value) for value in values):
            return None
        column = self._column(operand)
        if column is not None:
            return Comparison(column, op, tuple(_sql(value) for value in values))
        column, unit = self._truncated(operand)
        if column is None:
            return None
        return _either([_in_unit(column, op, _sql(value), unit) for value in values])

    def _truncated(self, e: Expr) -> tuple[str | None, str]:
        """Return the column of a moment that is cut to a unit of time, and the unit."""
        if isinstance(e, exp.Year):
            inner = e.this.this if isinstance(e.this, exp.TsOrDsToDate) else e.this
            return self._column(inner), "YEARS"
        if isinstance(e, exp.TsOrDsToDate | exp.Date) or (isinstance(e, exp.Cast) and e.to.is_type("date")):
            return self._column(e.this), "DAY"
        if isinstance(e, exp.TimestampTrunc | exp.DateTrunc):
            unit = str(e.args["unit"].name).upper()
            return self._column(e.this), _UNITS.get(unit, unit)
        return None, ""

    def _column(self, e: Expr) -> str | None:
        """Return the table's column that an expression is, by its name in the schema."""
        if isinstance(e, exp.Paren) or (isinstance(e, exp.Cast) and e.to.is_type("timestamp", "timestamptz")):
            return self._column(e.this)
        if not isinstance(e, exp.Column) or e.table != self.alias:
            return None
        return next((name for name in self.reader.columns if name.lower() == e.name.lower()), None)

    def _lookups(self) -> Iterator[Condition | None]:
        """Yield the keys of inner joins whose other side has a filter of its own."""
        for term in self._terms(self.alias):
            if not isinstance(term, exp.EQ):
                continue
            for ours, theirs in ((term.this, term.expression), (term.expression, term.this)):
                others = {column.table for column in theirs.find_all(exp.Column)}
                if len(others) == 1 and self.alias not in others and self._column(ours):
                    yield self._lookup_in(ours, theirs, next(iter(others)))

    def _lookup_in(self, ours: Expr, theirs: Expr, other: str) -> Condition | None:
        source: Expr = next((node for name, node in self.scope.references if name == other), None)
        if source is None:
            return None
        tests = [
            term
            for term in self._terms(other)
            if {column.table for column in term.find_all(exp.Column)} == {other} and not term.find(exp.Query)
        ]
        if not tests and not source.find(exp.Where, exp.Having, exp.Limit):
            return None
        query = exp.select(theirs.copy()).from_(
            source.copy() if isinstance(source, exp.Table) else source.subquery(other)  # a copy as well
        )
        return self._lookup(ours, query.where(*[term.copy() for term in tests]) if tests else query)

    def _lookup(self, operand: Expr, query: Expr) -> Condition | None:
        column = self._column(operand)
        if column is None or not self._is_closed(query):
            return None
        if any(_key(table) == self.reader.table for table in query.find_all(exp.Table)):
            return None  # it would read the whole table
        return Lookup(column, _sql(query))

    def _is_constant(self, e: Expr) -> bool:
        query = e.find(exp.Query)
        if query is None:
            return e.find(exp.Column) is None and not isinstance(e, exp.Null)
        return isinstance(e, exp.Subquery) and self._is_closed(e)

    def _is_closed(self, query: Expr) -> bool:
        """Return whether a subquery names no table of the queries around it."""
        own = {table.alias_or_name for table in query.find_all(exp.Table, exp.Subquery, exp.Values)}
        return all(column.table in own for column in query.find_all(exp.Column) if column.table)


def _check_size(tree: Expr) -> None:
    if sum(1 for _ in tree.walk()) > _MOST_NODES:
        msg = "it is too large with its CTEs and views written out"
        raise UnreadError(msg)


def _in_unit(column: str, op: str, value: str, unit: str) -> Condition:
    """Return a test of a moment cut to a unit as a test of the moment itself."""
    low, high = f"({value})", ""
    if unit == "YEARS":
        low, high = f"make_date({value}, 1, 1)", f"make_date({value} + 1, 1, 1)"
    elif unit == "DAY":
        low, high = f"CAST(({value}) AS DATE)", f"CAST(({value}) AS DATE) + INTERVAL 1 DAY"
    else:
        count = unit if unit[0].isdigit() else f"1 {unit}"
        high = f"CAST(({value}) AS TIMESTAMP) + INTERVAL {count}"
    tests = {
        "=": [(">=", low), ("<", high)],
        "<": [("<", low)],
        "<=": [("<", high)],
        ">": [(">=", high)],
        ">=": [(">=", low)],
    }
    return Every(tuple(Comparison(column, test, (bound,)) for test, bound in tests[op]))


def _every(terms: Sequence[Condition | None]) -> Condition | None:
    found = tuple(dict.fromkeys(term for term in terms if term is not None))
    return found[0] if len(found) == 1 else Every(found) if found else None


def _either(terms: Sequence[Condition | None]) -> Condition | None:
    found = tuple(term for term in terms if term is not None)
    if len(found) < len(terms):
        return None
    return found[0] if len(found) == 1 else Either(found)


def _conjuncts(e: Expr | None) -> list[Expr]:
    if e is None:
        return []
    if isinstance(e, exp.Paren):
        return _conjuncts(e.this)
    return [*_conjuncts(e.this), *_conjuncts(e.expression)] if isinstance(e, exp.And) else [e]


def _in_place(table: Expr, query: Expr, alias: Expr | None) -> Expr:
    """Return a query in the place of the name of a CTE or view."""
    named = exp.TableAlias(this=exp.to_identifier(table.alias or table.name))
    columns = alias.args.get("columns") if alias is not None else None
    if columns:
        named.set("columns", [column.copy() for column in columns])
    kept = {name: table.args.get(name) for name in ("joins", "laterals", "pivots", "sample")}
    return exp.Subquery(this=query.copy(), alias=named, **{name: value for name, value in kept.items() if value})


def _key(table: Expr) -> TableKey:
    return table.db.lower(), table.name.lower()


def _sql(e: Expr) -> str:
    return str(e.sql(dialect=_DIALECT))
