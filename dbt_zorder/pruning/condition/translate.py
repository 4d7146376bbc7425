"""Translate the tree of a predicate to a condition on a file's statistics."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql.types import BooleanType, DataType, TimestampNTZType, TimestampType

from dbt_zorder.pruning.condition import atoms
from dbt_zorder.pruning.condition.bounds import cast, is_cast, read_operand
from dbt_zorder.pruning.condition.cases import branches, find_conditional, not_true
from dbt_zorder.pruning.condition.condition import All, Any, Atom, Unknown
from dbt_zorder.pruning.condition.constants import (
    compared_constants,
    is_constant,
    is_null,
    is_repeatable,
    unknown_reason,
)
from dbt_zorder.pruning.condition.letter_case import find_prefixes
from dbt_zorder.pruning.condition.like import REPLACEMENT, Tail, split_pattern, split_regex
from dbt_zorder.pruning.condition.operand import Operand, StatsNames
from dbt_zorder.pruning.condition.types import Family, Rules, comparable, comparable_in_list, family, sorts_alike
from dbt_zorder.pruning.predicate.tree import (
    And,
    Between,
    Call,
    Cast,
    Column,
    Compare,
    In,
    IsNull,
    Like,
    Literal,
    Node,
    Not,
    Or,
    Row,
    Text,
    replaced,
    to_sql,
)
from dbt_zorder.spark.ddl import type_ddl
from dbt_zorder.spark.sql import quote_string

_TRUE = Literal("TRUE")
_FALSE = "false"
_BOOLEAN = And | Or | Not | Compare | Between | In | IsNull | Like
_SPELLING = re.compile(r"0|-?[1-9][0-9]{0,18}")
_REGEX = {"regexp", "regexp_like", "rlike"}
_CLOCKED = {Family.DATE, Family.TIMESTAMP, Family.TIMESTAMP_NTZ}
NO_LEGACY = Rules()


@dataclass(frozen=True)
class Translator:
    """Translator of predicate trees to conditions.

    Attributes:
        stats: names of the columns in the stats query.
        types: Spark's types, keyed by a constant's SQL or by the text of a cast's target.
        rules: settings of the session that affect type coercion.
        single_values: whether Spark evaluates any other repeatable part for files with one value in each column.
        functions: whether Spark computes the bounds of functions, which fails where one of them does.
        unusable: columns whose statistics prove nothing, with the reason for each.
    """

    stats: StatsNames
    types: Mapping[str, DataType]
    rules: Rules = NO_LEGACY
    single_values: bool = True
    functions: bool = True
    unusable: Mapping[Column, str] = field(default_factory=dict)

    def translate(self, node: Node, *, negated: bool = False) -> Atom | Unknown | All | Any:
        """Return the condition under which a file may contain a row that makes ``node`` (or ``NOT node``) TRUE."""
        match node:
            case Not(child=child):
                return self.translate(child, negated=not negated)
            case And(terms=terms):
                parts = tuple(self.translate(term, negated=negated) for term in terms)
                return Any(parts) if negated else All(parts)
            case Or(terms=terms):
                parts = tuple(self.translate(term, negated=negated) for term in terms)
                return All(parts) if negated else Any(parts)
            case Between(child=child, low=low, high=high):
                pair = And((Compare(">=", child, low), Compare("<=", child, high)))
                return self.translate(pair, negated=negated)
        # rows are compared column by column, and each pair is translated on its own
        by_pairs = isinstance(node, In) and isinstance(node.child, Row)
        found = self._atom(node, negated) if by_pairs or is_repeatable(node) else None
        if found is None:
            found = self._constant(node, negated) or self._cases(node, negated)
        if found is None:
            single = self._single_value(node, negated) if self.single_values else None
            prefixed = None if negated else self._letter_case(node)
            found = All((single, prefixed)) if single and prefixed else single or prefixed
        return found or Unknown(_text(node, negated), self._reason(node))

    def _atom(self, node: Node, negated: bool) -> Atom | Unknown | All | Any | None:
        match node:
            case Column(data_type=BooleanType()):
                return self._compare(Compare("=", node, _TRUE), negated, node)
            case Compare(left=left, right=Literal(sql="TRUE" | "FALSE" as wanted)) if isinstance(left, _BOOLEAN):
                return self._truth(left, node.op, wanted == "TRUE", negated)
            case Compare():
                return self._compare(node, negated, node)
            case IsNull(child=child):
                return self._is_null(child, negated != node.negated, negated, node)
            case In(child=Row()):
                return None if negated else self._in_rows(node)
            case In():
                return self._in(node, negated)
            case Like():
                return self._like(node, negated)
            case Call(name=name, args=(child, Text(value=prefix))) if name.lower() == "startswith":
                operand = self._operand(child)
                if operand is None or family(operand.data_type) is not Family.STRING:
                    return None
                rule = atoms.not_starts_with if negated else atoms.starts_with
                return self._make(node, negated, rule(operand, prefix), operand)
            case Call(name=name, args=(child, Text(value=pattern))) if name.lower() in _REGEX:
                return self._regex(node, child, pattern, negated)
        return None

    def _truth(self, test: Node, op: str, wanted: bool, negated: bool) -> Atom | Unknown | All | Any | None:
        """Translate ``test = TRUE`` and ``test <=> FALSE``."""
        if op == "=" or (op == "<=>" and not negated):
            return self.translate(test, negated=negated == wanted)
        other = not_true(test if wanted else Not(test)) if op == "<=>" else None
        return None if other is None else self.translate(other)

    def _compare(self, node: Compare, negated: bool, shown: Node) -> Atom | None:
        left, right = self._operand(node.left), self._operand(node.right)
        if left is not None and right is not None:
            return self._compare_columns(node.op, left, right, negated, shown)
        op, operand, value, side = node.op, left, node.right, node.left
        if operand is None:
            op, operand, value, side = atoms.FLIP[node.op], right, node.left, node.right
        if operand is None:
            return self._number_text(side, op, (value,), negated, shown) or self._number_text(
                value, op, (side,), negated, shown
            )
        operand = self._in_type_of(operand, (value,))
        if operand is None or not self._comparable(operand, value):
            return None
        text = to_sql(value)
        if op == "<=>":
            if is_null(value):
                rule = atoms.is_not_null if negated else atoms.is_null
                return self._make(shown, negated, rule(operand, self.stats), operand)
            safe = atoms.not_null_safe_equal if negated else atoms.null_safe_equal
            return self._make(shown, negated, safe(operand, text, self.stats), operand)
        return self._make(
            shown, negated, atoms.compare(atoms.COMPLEMENT[op] if negated else op, operand, text), operand
        )

    def _compare_columns(self, op: str, left: Operand, right: Operand, negated: bool, shown: Node) -> Atom | None:
        if family(left.data_type) in _CLOCKED and family(right.data_type) in _CLOCKED:
            both = _widest(left.data_type, right.data_type)
            one, other = cast(left, both), cast(right, both)
            if one is None or other is None:
                return None
            left, right = one, other
        if op == "<=>" or left.data_type != right.data_type:
            return None
        sql = atoms.compare_columns(atoms.COMPLEMENT[op] if negated else op, left, right)
        return self._make(shown, negated, sql, left, right)

    def _is_null(self, child: Node, not_null: bool, negated: bool, shown: Node) -> Atom | None:
        operand = self._operand(child)
        if operand is None and isinstance(child, Column) and child in self.stats.aliases:
            # NULL is NULL in every type and collation, so no bounds are needed.
            operand = Operand(child, "", "", child.data_type)
        if operand is None:
            return None
        rule = atoms.is_not_null if not_null else atoms.is_null
        return self._make(shown, negated, rule(operand, self.stats), operand)

    def _in(self, node: In, negated: bool) -> Atom | None:
        operand = self._operand(node.child)
        if operand is None:
            return self._number_text(node.child, "=", node.values, negated, node)
        operand = self._in_type_of(operand, node.values)
        if operand is None or not all(is_constant(value) for value in node.values):
            return None
        kinds = [self.types.get(to_sql(value)) for value in node.values]
        known = [kind for kind in kinds if kind is not None]
        if len(known) < len(kinds) or not comparable_in_list(operand.data_type, known, self.rules):
            return None
        if negated:
            sql = atoms.not_in_list(operand, [to_sql(value) for value in node.values])
        else:
            values = [to_sql(value) for value in node.values if not is_null(value)]
            found = atoms.in_list(operand, values, sortable=sorts_alike(operand.data_type, known))
            if found is None:
                return None
            sql = found
        return self._make(node, negated, sql, operand)

    def _in_rows(self, node: In) -> Any | None:
        """Translate ``(a, b) IN ((1, 2), ...)``: Spark compares rows as structs, in which NULL equals NULL."""
        assert isinstance(node.child, Row)
        width = len(node.child.items)
        rows = [value.items for value in node.values if isinstance(value, Row) and len(value.items) == width]
        if len(rows) < len(node.values) or not rows:
            return None
        for position, item in enumerate(node.child.items):
            operand = self._operand(item)
            kinds = [self.types.get(to_sql(row[position])) for row in rows]
            known = [kind for kind in kinds if kind is not None]
            if operand is None or len(known) < len(kinds) or not all(is_constant(row[position]) for row in rows):
                return None
            if not comparable_in_list(operand.data_type, known, self.rules):
                return None
        return Any(
            tuple(
                All(tuple(self.translate(Compare("<=>", *pair)) for pair in zip(node.child.items, row, strict=True)))
                for row in rows
            )
        )

    def _like(self, node: Like, negated: bool) -> Atom | None:
        operand = self._operand(node.child)
        if operand is None or family(operand.data_type) is not Family.STRING or not isinstance(node.pattern, Text):
            return None
        if node.ignores_case:
            return None
        kind = self.types.get(to_sql(node.pattern))
        pattern = split_pattern(node.pattern.value, node.escape)
        if kind is None or family(kind) is not Family.STRING or pattern is None:
            return None
        sql = atoms.like(operand, pattern, negated=negated)
        return None if sql is None else self._make(node, negated, sql, operand)

    def _regex(self, node: Node, child: Node, text: str, negated: bool) -> Atom | None:
        operand, pattern = self._operand(child), split_regex(text)
        if operand is None or family(operand.data_type) is not Family.STRING or pattern is None:
            return None
        if REPLACEMENT in pattern.prefix or (negated and pattern.tail is not Tail.ANYTHING):
            return None
        rule = atoms.not_starts_with if negated else atoms.starts_with
        return self._make(node, negated, rule(operand, pattern.prefix), operand)

    def _letter_case(self, node: Node) -> Atom | None:
        """Return an atom for ``lower(c) = 'bob'`` and ``c ILIKE 'bob%'``, by the ways in which such a text begins."""
        found = find_prefixes(node) if is_repeatable(node) else None
        operand = None if found is None else self._operand(found[0])
        if found is None or operand is None or family(operand.data_type) is not Family.STRING:
            return None
        kinds = [self.types.get(to_sql(constant)) for constant in compared_constants(node)]
        if any(kind is None or family(kind) is not Family.STRING for kind in kinds):
            return None
        return self._make(
            node, False, " OR ".join(f"({atoms.starts_with(operand, prefix)})" for prefix in found[1]), operand
        )

    def _number_text(self, side: Node, op: str, values: Sequence[Node], negated: bool, shown: Node) -> Atom | None:
        """Return an atom for ``CAST(number AS STRING) = '42'``: only a number in its one spelling has an equal."""
        if isinstance(side, Cast):
            target, child = self.types.get(side.type_sql), side.child
        elif is_cast(side) and isinstance(side, Call):
            target, child = self.types.get(to_sql(side)), side.args[0]
        else:
            return None
        operand = self._operand(child)
        if operand is None or family(operand.data_type) is not Family.INTEGRAL or target is None:
            return None
        if family(target) is not Family.STRING or op not in ("=", "<>"):
            return None
        texts = [value.value for value in values if isinstance(value, Text)]
        kinds = [self.types.get(to_sql(value)) for value in values]
        if len(texts) < len(values) or any(kind is None or family(kind) is not Family.STRING for kind in kinds):
            return None
        numbers = [f"CAST({quote_string(text)} AS BIGINT)" for text in texts if _is_bigint(text)]
        if negated == (op == "="):
            sql = atoms.not_in_list(operand, numbers) if numbers else atoms.is_not_null(operand, self.stats)
        else:
            sql = atoms.in_list(operand, numbers) or _FALSE
        return self._make(shown, negated, sql, operand)

    def _cases(self, node: Node, negated: bool) -> Any | None:
        """Translate a predicate on ``coalesce``, ``if``, ``CASE`` and the like case by case."""
        conditional = find_conditional(node) if is_repeatable(node) and self.functions else None
        if conditional is None:
            return None
        found = []
        for branch in branches(conditional):
            value = branch.value if conditional == node else self._in_common_type(branch.value, conditional)
            if value is None:
                return None
            guards = tuple(self.translate(guard) for guard in branch.guards)
            found.append(All((*guards, self.translate(replaced(node, conditional, value), negated=negated))))
        return Any(tuple(found))

    def _in_common_type(self, value: Node, conditional: Node) -> Node | None:
        """Return a case's value, cast to the type of all cases as Spark casts it."""
        common, own = self.types.get(to_sql(conditional)), self._type(value)
        if common is None or own is None or family(common) is None:
            return None
        return value if own == common else Cast(value, type_ddl(common))

    def _type(self, node: Node) -> DataType | None:
        if isinstance(node, Column):
            return node.data_type if node.plain else None
        return self.types.get(node.type_sql if isinstance(node, Cast) else to_sql(node))

    def _constant(self, node: Node, negated: bool) -> Atom | None:
        """Return an atom for a constant such as ``1 = 0``, which Spark evaluates."""
        if not is_constant(node):
            return None
        return Atom(_text(node, negated), to_sql(Not(node) if negated else node), ())

    def _single_value(self, node: Node, negated: bool) -> Atom | None:
        """Return an atom for any repeatable part, which Spark evaluates in files that contain one value in each column.

        Equal bounds mean one value. The exception is 0.0, which equals -0.0, while functions distinguish the two.
        """
        columns = tuple(node.columns())
        if not columns or not is_repeatable(node) or isinstance(node, Row):
            return None
        for column in columns:
            kind = family(column.data_type) if column.plain else None
            if column not in self.stats.aliases or kind is None or kind is Family.BINARY_FLOAT:
                return None
        one = " AND ".join(
            f"{self.stats.min_value(c)} = {self.stats.max_value(c)} AND {self.stats.null_count(c)} = 0" for c in columns
        )
        value = to_sql(Not(node) if negated else node, column=self.stats.min_value)
        sql = f"if(coalesce({one}, false), coalesce({value}, false), true)"
        return Atom(f"{_text(node, negated)}  [files of one value]", sql, columns)

    def _operand(self, node: Node) -> Operand | None:
        columns = node.columns()
        known = columns and all(column in self.stats.aliases for column in columns)
        if not known or not (self.functions or isinstance(node, Column | Cast)):
            return None
        return read_operand(node, self.stats, self.types)

    def _in_type_of(self, operand: Operand, values: Sequence[Node]) -> Operand | None:
        """Return a TIMESTAMP_NTZ as the TIMESTAMP to which Spark casts it beside one."""
        kinds = [self.types.get(to_sql(value)) for value in values]
        instants = {family(kind) for kind in kinds if kind is not None} - {Family.NULL} == {Family.TIMESTAMP}
        if family(operand.data_type) is Family.TIMESTAMP_NTZ and instants:
            return cast(operand, TimestampType())
        return operand

    def _comparable(self, operand: Operand, value: Node) -> bool:
        kind = self.types.get(to_sql(value)) if is_constant(value) else None
        return kind is not None and comparable(operand.data_type, kind, self.rules)

    def _reason(self, node: Node) -> str:
        missing = [column for column in node.columns() if column not in self.stats.aliases]
        if not missing:
            return unknown_reason(node)
        return self.unusable.get(missing[0]) or f"there are no statistics of column '{missing[0].name}'"

    def _make(self, node: Node, negated: bool, sql: str, *operands: Operand) -> Atom:
        """Return an atom; a file whose bounds could not be computed passes it."""
        unbounded = [self.stats.unbounded(operand) for operand in operands if operand.is_open]
        may_match = " OR ".join([f"coalesce({sql}, false)", *unbounded]) if unbounded else sql
        return Atom(_text(node, negated), may_match, tuple(dict.fromkeys(operand.column for operand in operands)))


def _widest(left: DataType, right: DataType) -> DataType:
    """Return the type in which Spark compares two dates or times."""
    kinds = {family(left), family(right)}
    if len(kinds) == 1:
        return left
    return TimestampType() if Family.TIMESTAMP in kinds else TimestampNTZType()


def _is_bigint(text: str) -> bool:
    """Return whether a text is a BIGINT as Spark writes it."""
    return _SPELLING.fullmatch(text) is not None and -(2**63) <= int(text) < 2**63


def _text(node: Node, negated: bool) -> str:
    return to_sql(Not(node) if negated else node, top=True)


def keep_sql(condition: Atom | Unknown | All | Any, stats: StatsNames) -> str:
    """Return a condition as SQL that is TRUE or FALSE, never NULL, for every row of the stats table."""
    match condition:
        case Atom():
            sound = " AND ".join(stats.sound(column) for column in condition.columns) or "true"
            return f"(coalesce({condition.may_match}, false) OR NOT ({sound}))"
        case All():
            return "(" + " AND ".join(keep_sql(term, stats) for term in condition.terms) + ")"
        case Any():
            return "(" + " OR ".join(keep_sql(term, stats) for term in condition.terms) + ")"
    return "true"
