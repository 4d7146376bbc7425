"""Find the limits of a plan that are over one scan, and the order of the rows that they keep."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dbt_zorder.pruning.plans.tree import METADATA, Expression, PlanNode, sources


@dataclass(frozen=True)
class Limit:
    """A limit over the rows of one scan, which only projections, filters and a sort separate.

    Attributes:
        rows: number of rows that the limit uses, with those that an offset skips.
        key: column of the scan by which the rows are sorted first; empty if any rows will do.
        falls: whether the largest values come first.
        nulls_first: whether rows with NULL in the key come first.
        is_filtered: whether rows are filtered by more than the absence of NULL in the key.
        sorted_rows: path of the plan whose rows are sorted.
        place: index of the key in the output of that plan.
        scan: path of the scan.
        tests: number of tests directly above the scan, without marks.
    """

    rows: int
    key: str
    falls: bool
    nulls_first: bool
    is_filtered: bool
    sorted_rows: tuple[int, ...]
    place: int
    scan: tuple[int, ...]
    tests: int

    def __str__(self) -> str:
        return f"top {self.rows:,} by {self.key}" if self.key else f"limit of {self.rows:,}"


def find_limits(tree: PlanNode) -> dict[int, Limit]:
    """Return the limit of each scan in a plan that has one, by the scan's first attribute."""
    found: dict[int, Limit] = {}
    for node in tree.walk():
        if node.kind == "GlobalLimit" and (limit := _limit(node)) is not None:
            first, its = limit
            found[first] = its
    return found


def first_attributes(tree: PlanNode) -> Iterator[int]:
    """Yield the first attribute of each scan in a plan."""
    for node in tree.walk():
        if node.kind == "LogicalRelation" and (output := node.output) and output[0] is not None:
            yield output[0]


def _limit(node: PlanNode) -> tuple[int, Limit] | None:
    """Return the limit that a node is, with the first attribute of its scan; None if it is over anything else."""
    rows = _number(node, "limitExpr")
    below = node.children[0]
    while rows is not None and below.kind in ("LocalLimit", "Offset", "Project"):
        if below.kind == "Offset":
            skipped = _number(below, "offsetExpr")
            rows = None if skipped is None else rows + skipped
        elif below.kind == "LocalLimit":
            most = _number(below, "limitExpr")
            rows = None if most is None or most < rows else rows  # each task could give fewer than the limit asks for
        below = below.children[0]
    if rows is None or rows <= 0:
        return None
    if below.kind != "Sort":
        return _over_scan(below, rows, None, falls=False, nulls_first=False)
    order = below.expressions("order")
    key = order[0].children[0] if order else None
    if key is None or key.kind != "AttributeReference" or below.fields.get("global") is not True:
        return None
    falls, nulls_first = (
        _names(order[0], name, kind) for name, kind in (("direction", "Descending"), ("nullOrdering", "NullsFirst"))
    )
    return _over_scan(below.children[0], rows, key.attribute, falls=falls, nulls_first=nulls_first)


def _over_scan(
    top: PlanNode, rows: int, key: int | None, *, falls: bool, nulls_first: bool
) -> tuple[int, Limit] | None:
    """Return the limit of the scan below a plan of projections and filters.

    Args:
        top: plan whose rows are sorted, or kept in any order.
        rows: number of rows that the limit uses.
        key: id of the attribute by which they are sorted; None if they are not.
        falls, nulls_first: order of the rows.
    """
    place = 0 if key is None else top.output.index(key)
    is_filtered = False
    tests: list[Expression] = []
    below = top
    while below.kind != "LogicalRelation":
        if below.kind == "Project":
            if key is not None and (key := sources(below.expressions("projectList")).get(key)) is None:
                return None  # computed from columns
        elif below.kind == "Filter":
            tests = [term for term in below.expressions("condition")[0].conjuncts() if not _is_mark(term)]
            for term in tests:
                if any(part.kind == "OuterReference" for part in term.walk()):
                    return None  # other rows for each row of another plan
                if _is_not_null(term, key):
                    nulls_first = False  # none is left
                else:
                    is_filtered = True
        else:
            return None
        below = below.children[0]
    columns = {one.attribute: str(one.fields["name"]) for one in below.expressions("output")}
    first = below.output[0] if below.output else None
    if first is None or (key is None and is_filtered):
        return None
    name = "" if key is None else columns[key]
    return first, Limit(rows, name, falls, nulls_first, is_filtered, top.path, place, below.path, len(tests))


def _number(node: PlanNode, name: str) -> int | None:
    """Return a number of rows that a node states; None if it is no literal."""
    found = node.expressions(name)
    is_literal = len(found) == 1 and found[0].kind == "Literal" and found[0].fields.get("dataType") == "integer"
    return int(found[0].fields["value"]) if is_literal else None


def _names(order: Expression, name: str, kind: str) -> bool:
    return str(order.fields[name]["object"]).rstrip("$").endswith(f".{kind}")


def _is_not_null(term: Expression, key: int | None) -> bool:
    """Return whether a test only asks that the key is not NULL."""
    return term.kind == "IsNotNull" and key is not None and term.children[0].attribute == key


def _is_mark(term: Expression) -> bool:
    """Return whether a test is the mark of a scan, which every row passes."""
    leaves = [part for part in term.walk() if not part.children]
    is_test = term.kind == "Not" and term.children[0].kind == "EqualTo"
    return is_test and all(one.kind == "Literal" or one.fields.get("name") == METADATA for one in leaves)
