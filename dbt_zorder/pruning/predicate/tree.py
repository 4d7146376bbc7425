"""Tree of a predicate, and its conversion to Spark SQL with every operator in parentheses.

Pruning never trusts a parser alone. It writes the tree back as text and asks Spark whether it means the same as the
user's text (see :mod:`dbt_zorder.pruning.predicate.confirm`). So pruning always uses this tree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace

from pyspark.sql.types import DataType

from dbt_zorder.spark.sql import quote_name, quote_string


@dataclass(frozen=True)
class Node:
    """Base of all nodes."""

    def children(self) -> Iterator[Node]:
        """Yield the nodes directly below this one."""
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, Node):
                yield value
            elif isinstance(value, tuple):
                yield from (item for item in value if isinstance(item, Node))

    def walk(self) -> Iterator[Node]:
        """Yield this node and all below it, without recursion: predicates may be deep."""
        stack: list[Node] = [self]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(node.children())

    def columns(self) -> list[Column]:
        """Return every column in this node, each once."""
        return list(dict.fromkeys(node for node in self.walk() if isinstance(node, Column)))


@dataclass(frozen=True)
class Column(Node):
    """A resolved column or leaf of a struct: ``path`` is spelled as in the schema.

    ``plain`` is false if the column's order is not that of its bytes. It is also false if the declared type differs
    from the type that is read (CHAR, collations). The bounds of such a column are never used.
    """

    path: tuple[str, ...]
    data_type: DataType
    plain: bool = True

    @property
    def name(self) -> str:
        """Return the path with dots, which is the name of the field in the stats table."""
        return ".".join(self.path)


@dataclass(frozen=True)
class Literal(Node):
    """A number, NULL, TRUE, FALSE, or a typed literal such as ``DATE '2024-01-01'``, as the user wrote it."""

    sql: str


@dataclass(frozen=True)
class Text(Node):
    """A string literal, by its value."""

    value: str


@dataclass(frozen=True)
class Cast(Node):
    """``CAST(child AS type_sql)``."""

    child: Node
    type_sql: str


@dataclass(frozen=True)
class Call(Node):
    """A function by the name that the user wrote."""

    name: str
    args: tuple[Node, ...]


@dataclass(frozen=True)
class Arithmetic(Node):
    """``left op right`` with ``+ - * / % ||`` and ``div``."""

    op: str
    left: Node
    right: Node


@dataclass(frozen=True)
class Negative(Node):
    """``-child``."""

    child: Node


@dataclass(frozen=True)
class Compare(Node):
    """``left op right``; ``op`` is one of ``= <> < <= > >= <=>``."""

    op: str
    left: Node
    right: Node


@dataclass(frozen=True)
class Between(Node):
    """``child BETWEEN low AND high``, bounds included."""

    child: Node
    low: Node
    high: Node


@dataclass(frozen=True)
class In(Node):
    """``child IN (values)``."""

    child: Node
    values: tuple[Node, ...]


@dataclass(frozen=True)
class Row(Node):
    """``(a, b)``."""

    items: tuple[Node, ...]


@dataclass(frozen=True)
class Like(Node):
    """``child LIKE pattern ESCAPE escape``, or ``ILIKE`` if it ignores the case of letters."""

    child: Node
    pattern: Node
    escape: str | None = None
    ignores_case: bool = False


@dataclass(frozen=True)
class IsNull(Node):
    """``child IS NULL``, or ``IS NOT NULL``, which Spark's analyzer distinguishes from ``NOT (child IS NULL)``."""

    child: Node
    negated: bool = False


@dataclass(frozen=True)
class Not(Node):
    """``NOT child``."""

    child: Node


@dataclass(frozen=True)
class And(Node):
    """Conjunction of ``terms``."""

    terms: tuple[Node, ...]


@dataclass(frozen=True)
class Or(Node):
    """Disjunction of ``terms``."""

    terms: tuple[Node, ...]


@dataclass(frozen=True)
class Case(Node):
    """``CASE WHEN condition THEN value ... ELSE default END``, with as many conditions as values."""

    conditions: tuple[Node, ...]
    values: tuple[Node, ...]
    default: Node | None = None


@dataclass(frozen=True)
class Opaque(Node):
    """A part that pruning does not analyse, and the reason."""

    sql: str
    reason: str


def replaced(node: Node, old: Node, new: Node) -> Node:
    """Return ``node`` with ``new`` in place of every part that equals ``old``."""
    if node == old:
        return new
    changes: dict[str, object] = {}
    for field in fields(node):
        value = getattr(node, field.name)
        if isinstance(value, Node):
            changes[field.name] = replaced(value, old, new)
        elif isinstance(value, tuple):
            changes[field.name] = tuple(replaced(item, old, new) if isinstance(item, Node) else item for item in value)
    return replace(node, **changes) if changes else node


def column_sql(column: Column) -> str:
    """Return the column as SQL, every part quoted."""
    return quote_name(*column.path)


def to_sql(
    node: Node, *, is_not_null: bool = True, column: Callable[[Column], str] = column_sql, top: bool = False
) -> str:
    """Return ``node`` as Spark SQL, with parentheses around every operator.

    Args:
        node: tree to write.
        is_not_null: whether to write ``x IS NOT NULL``, or else ``NOT (x IS NULL)``, as sqlglot reads ``NOT x IS
            NULL``.
        column: function that writes a column.
        top: whether to leave out the outermost parentheses.
    """

    def sql(inner: Node) -> str:
        return to_sql(inner, is_not_null=is_not_null, column=column)

    text = _operator(node, sql, is_not_null)
    if text is not None:
        return text if top else f"({text})"
    match node:
        case Column():
            return column(node)
        case Literal():
            return node.sql
        case Text():
            return quote_string(node.value)
        case Cast():
            return f"CAST({sql(node.child)} AS {node.type_sql})"
        case Call():
            return f"{node.name}({', '.join(sql(arg) for arg in node.args)})"
        case Row():
            return f"({', '.join(sql(item) for item in node.items)})"
        case Case():
            pairs = zip(node.conditions, node.values, strict=True)
            whens = " ".join(f"WHEN {sql(condition)} THEN {sql(value)}" for condition, value in pairs)
            default = "" if node.default is None else f" ELSE {sql(node.default)}"
            return f"CASE {whens}{default} END"
        case Opaque():
            return f"({node.sql})"
    msg = f"No SQL for {type(node).__name__}."
    raise TypeError(msg)


def _operator(node: Node, sql: Callable[[Node], str], is_not_null: bool) -> str | None:
    match node:
        case Compare() | Arithmetic():
            return f"{sql(node.left)} {node.op} {sql(node.right)}"
        case Negative():
            return f"- {sql(node.child)}"
        case Between():
            return f"{sql(node.child)} BETWEEN {sql(node.low)} AND {sql(node.high)}"
        case In():
            return f"{sql(node.child)} IN ({', '.join(sql(value) for value in node.values)})"
        case Like():
            escape = "" if node.escape is None else f" ESCAPE {quote_string(node.escape)}"
            word = "ILIKE" if node.ignores_case else "LIKE"
            return f"{sql(node.child)} {word} {sql(node.pattern)}{escape}"
        case IsNull():
            if not node.negated:
                return f"{sql(node.child)} IS NULL"
            return f"{sql(node.child)} IS NOT NULL" if is_not_null else f"NOT ({sql(node.child)} IS NULL)"
        case Not():
            return f"NOT {sql(node.child)}"
        case And():
            return " AND ".join(sql(term) for term in node.terms)
        case Or():
            return " OR ".join(sql(term) for term in node.terms)
    return None
