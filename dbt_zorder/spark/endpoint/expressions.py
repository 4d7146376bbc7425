"""Write the expressions of Spark Connect's plans as SQL."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql.connect.types import proto_schema_to_pyspark_data_type
from pyspark.sql.types import DataType

from dbt_zorder.spark.columns import split_name
from dbt_zorder.spark.ddl import type_ddl
from dbt_zorder.spark.endpoint.unsupported import UnsupportedError
from dbt_zorder.spark.sql import NO_CODE, quote_name, quote_string

_OPERATORS: Mapping[str, str] = {
    **{name: name.upper() for name in ("and", "or", "like", "rlike")},
    **{name: name for name in ("+", "-", "*", "/", "%", "&", "|", "^", "<", "<=", ">", ">=", "<=>", "!=")},
    "==": "=",
}
"""SQL's operators by the names of their functions."""

_WORD = re.compile(r"[A-Za-z_]\w*")
_QUOTED = re.compile(NO_CODE, re.DOTALL)
_BRACKETS = {")": "(", "]": "["}
_ALIAS = re.compile(r"\bas\s+(?:\w+|`(?:[^`]|``)+`)\s*\Z", re.IGNORECASE)


def to_sql(expression: Any) -> str:
    """Return the SQL text of an expression without a name, which can be a part of another expression.

    Raises:
        ParseException: a text in it is not one whole expression.
        UnsupportedError: it has no form in SQL here.
    """
    kind = expression.WhichOneof("expr_type")
    found = _WRITERS.get(kind)
    if found is None:
        msg = f"An expression of the kind '{kind}' cannot be written as SQL."
        raise UnsupportedError(msg)
    return found(getattr(expression, kind))


def selected(expression: Any) -> str:
    """Return the SQL text of an expression as an item of a SELECT, with its name if it has one."""
    kind = expression.WhichOneof("expr_type")
    if kind == "alias":
        return f"{to_sql(expression.alias.expr)} AS {_name_of(expression.alias)}"
    if kind == "expression_string":
        return f"{whole(expression.expression_string.expression)}\n"
    return to_sql(expression)


def name_of(expression: Any) -> str | None:
    """Return the name that a selected expression certainly has; None if only Spark can say."""
    kind = expression.WhichOneof("expr_type")
    if kind == "alias":
        return str(expression.alias.name[0])
    if kind == "unresolved_attribute":
        return split_name(expression.unresolved_attribute.unparsed_identifier)[-1]
    if kind == "expression_string":
        found = _ALIAS.search(expression.expression_string.expression)
        return None if found is None else found[0][2:].strip().strip("`").replace("``", "`")
    return None


def whole(text: str) -> str:
    """Return a text that is one whole expression, so that the brackets around it cannot be closed by it.

    Raises:
        ParseException: its brackets or quotes do not match, or it has several statements.
    """
    code, opened = _QUOTED.sub(" ", text), []
    for char in code:
        if char in "([":
            opened.append(char)
        elif char in ")]" and (not opened or opened.pop() != _BRACKETS[char]):
            opened.append("")
            break
    if opened or any(char in code for char in "'\"`;") or "/*" in code:
        msg = f"[PARSE_SYNTAX_ERROR] Brackets or quotes do not match in {text!r}."
        raise ParseException(msg)
    return text


def type_of(kind: Any) -> DataType:
    """Return the type of a plan."""
    return proto_schema_to_pyspark_data_type(kind)


def _attribute(attribute: Any) -> str:
    if attribute.is_metadata_column:
        msg = f"The name '{attribute.unparsed_identifier}' of a hidden column is taken by a column."
        raise AnalysisException(msg)
    return quote_name(*split_name(attribute.unparsed_identifier))


def _star(star: Any) -> str:
    return star.unparsed_target or "*"


def _function(call: Any) -> str:
    name, given = str(call.function_name), list(call.arguments)
    if name == "struct":
        names = [name_of(one) for one in given]
        if any(one is None for one in names):
            msg = "A field of a struct has no name."
            raise UnsupportedError(msg)
        fields = (
            f"{quote_string(str(field))}, {to_sql(_unnamed(one))}" for field, one in zip(names, given, strict=True)
        )
        return f"named_struct({', '.join(fields)})"
    args = [to_sql(one) for one in given]
    if name in _OPERATORS and len(args) == 2:
        return f"({args[0]} {_OPERATORS[name]} {args[1]})"
    if name == "not":
        return f"(NOT {args[0]})"
    if name == "in":
        return f"({args[0]} IN ({', '.join(args[1:])}))" if args[1:] else "false"
    if name == "when":
        pairs = [f"WHEN {args[n]} THEN {args[n + 1]}" for n in range(0, len(args) - 1, 2)]
        default = f" ELSE {args[-1]}" if len(args) % 2 else ""
        return f"CASE {' '.join(pairs)}{default} END"
    if not _WORD.fullmatch(name):
        msg = f"The function '{name}' cannot be written as SQL."
        raise UnsupportedError(msg)
    distinct = "DISTINCT " if call.is_distinct else ""
    return f"{name}({distinct}{', '.join(args)})"


def _unnamed(expression: Any) -> Any:
    return expression.alias.expr if expression.WhichOneof("expr_type") == "alias" else expression


def _name_of(alias: Any) -> str:
    if len(alias.name) != 1:
        msg = "An expression has several names."
        raise UnsupportedError(msg)
    return quote_name(alias.name[0])


def _cast(cast: Any) -> str:
    target = cast.type_str if cast.WhichOneof("cast_to_type") == "type_str" else type_ddl(type_of(cast.type))
    mode = cast.EvalMode.Name(cast.eval_mode) if cast.eval_mode else ""
    return f"{'try_cast' if mode.endswith('TRY') else 'CAST'}({to_sql(cast.expr)} AS {target})"


def order_sql(order: Any) -> str:
    """Return the SQL text of a sort order."""
    direction = "DESC" if "DESC" in order.SortDirection.Name(order.direction) else "ASC"
    nulls = "LAST" if "LAST" in order.NullOrdering.Name(order.null_ordering) else "FIRST"
    return f"{to_sql(order.child)} {direction} NULLS {nulls}"


def _extract(extract: Any) -> str:
    part = extract.extraction
    if part.WhichOneof("expr_type") == "literal" and part.literal.WhichOneof("literal_type") == "string":
        return f"{to_sql(extract.child)}.{quote_name(part.literal.string)}"
    return f"{to_sql(extract.child)}[{to_sql(part)}]"


def _literal(literal: Any) -> str:
    kind = literal.WhichOneof("literal_type")
    value = getattr(literal, kind)
    writer = _LITERALS.get(kind)
    if writer is None:
        msg = f"A literal of the kind '{kind}' cannot be written as SQL."
        raise UnsupportedError(msg)
    return writer(value)


def _double(value: float) -> str:
    special = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
    return f"CAST('{special.get(repr(value), repr(value))}' AS DOUBLE)"


_LITERALS: Mapping[str, Callable[[Any], str]] = {
    "null": lambda kind: f"CAST(NULL AS {type_ddl(type_of(kind))})",
    "boolean": lambda value: "true" if value else "false",
    "byte": lambda value: f"CAST({value} AS TINYINT)",
    "short": lambda value: f"CAST({value} AS SMALLINT)",
    "integer": lambda value: f"CAST({value} AS INT)",
    "long": lambda value: f"CAST({value} AS BIGINT)",  # the lowest BIGINT has no literal of its own
    "float": lambda value: f"CAST({_double(value)} AS FLOAT)",
    "double": _double,
    "string": quote_string,
    "binary": lambda value: f"X'{value.hex()}'",
    "date": lambda value: f"date_from_unix_date({value})",
    "timestamp": lambda value: f"timestamp_micros({value})",
}

_WRITERS: Mapping[str, Callable[[Any], str]] = {
    "literal": _literal,
    "unresolved_attribute": _attribute,
    "unresolved_function": _function,
    "expression_string": lambda text: f"({whole(text.expression)}\n)",
    "unresolved_star": _star,
    "alias": lambda alias: to_sql(alias.expr),
    "cast": _cast,
    "sort_order": order_sql,
    "unresolved_extract_value": _extract,
}
