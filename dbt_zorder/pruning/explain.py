"""Explain which files a scan reads and why."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any as AnyValue
from typing import overload
from urllib.parse import urlsplit

from pyspark.sql import DataFrame, SparkSession
from rich.console import Group
from rich.table import Table
from rich.text import Text

from dbt_zorder.humanize import counted, printed, size_text
from dbt_zorder.pruning.condition.condition import Atom, Unknown, leaves
from dbt_zorder.pruning.plain_sql.explanation import StatementExplanation, explain_statement
from dbt_zorder.pruning.plan import Plan, make_plan


@dataclass(frozen=True)
class Part:
    """One part of a predicate.

    Attributes:
        text: the part, as Spark understands it.
        excluded_files: number of files that the part excludes by itself; None if the part was not understood.
        reason: why the part was not understood.
    """

    text: str
    excluded_files: int | None
    reason: str = ""


@dataclass(frozen=True)
class Explanation:
    """Share of a table that a scan reads.

    Attributes:
        table: quoted name.
        predicate: predicate as given.
        files_total, rows_total, bytes_total: totals over the files in the statistics. Files without statistics count
            only in ``files_total``. None if there are no statistics.
        files_read, rows_read, bytes_read: the same over the files left to read, without the partition folders that
            Spark skips itself.
        parts: effect of each part of the predicate.
        reason: why every file is read; empty if files are skipped.
        unknown_files: number of data files without statistics, which are always read; None if not counted.
        gone_files: number of files in the statistics that no longer exist; None if not counted.
        fresh: whether the statistics cover exactly the existing files; None if not checked.
        warnings: settings that make results doubtful.
        skipped_by: the file format, if it skips files itself, for every reader and without a helper. The figures then
            come from the format's own statistics.
    """

    table: str
    predicate: str
    files_total: int | None = None
    files_read: int | None = None
    rows_total: int | None = None
    rows_read: int | None = None
    bytes_total: int | None = None
    bytes_read: int | None = None
    parts: list[Part] = field(default_factory=list)
    reason: str = ""
    unknown_files: int | None = None
    gone_files: int | None = None
    fresh: bool | None = None
    warnings: list[str] = field(default_factory=list)
    skipped_by: str = ""

    def to_dict(self) -> dict[str, AnyValue]:
        """Return all attributes as plain values, ready for JSON."""
        return asdict(self)

    def __rich__(self) -> Group:
        totals = Table("", "read", "of", "share")
        for name, read, total, show in (
            ("files", self.files_read, self.files_total, _number),
            ("rows", self.rows_read, self.rows_total, _number),
            ("bytes", self.bytes_read, self.bytes_total, size_text),
        ):
            share = f"{read / total:.1%}" if read is not None and total else "-"
            totals.add_row(name, show(read), show(total), share)
        parts = Table("part of the predicate", "files it excludes", "note")
        for part in self.parts:
            excluded = "-" if part.excluded_files is None else _number(part.excluded_files)
            parts.add_row(Text(part.text), excluded, Text(f"kept: {part.reason}" if part.reason else ""))
        what = "All files are read" if self.files_read == self.files_total else "Statistics leave no file out"
        lines = [Text(f"{what}: {self.reason}.")] if self.reason else []
        if self.skipped_by:
            lines.append(Text(f"A plain filter reads these: {self.skipped_by} skips files by its own statistics."))
        lines += [Text(self._freshness())] if self.fresh is not None else []
        lines += [Text(f"Warning: {warning}.") for warning in self.warnings]
        # a separate line in full length: rich would wrap the table's own title to the table's width
        title = Text(f"{self.table}: {self.predicate}", no_wrap=True, overflow="ignore")
        return Group(title, totals, *([parts] if self.parts else []), *lines)

    def __str__(self) -> str:
        return printed(self, width=120)

    def _freshness(self) -> str:
        if self.fresh:
            return "The statistics are fresh: they know every data file."
        unknown, gone = self.unknown_files or 0, self.gone_files or 0
        return (
            f"The statistics are stale: {counted(unknown, 'file')} {'is' if unknown == 1 else 'are'} not in them, "
            f"{gone:,} {'is' if gone == 1 else 'are'} gone."
        )


@overload
def explain(spark: SparkSession, table: str, predicate: str) -> Explanation: ...


@overload
def explain(spark: SparkSession, table: str, predicate: None = None) -> StatementExplanation: ...


def explain(spark: SparkSession, table: str, predicate: str | None = None) -> Explanation | StatementExplanation:
    """Return what :func:`dbt_zorder.pruning.scan` would read, and why; without a predicate, what ``query`` would read.

    ``explain(spark, "db.t", "a = 1")`` lists the table's files and opens none. ``explain(spark, "SELECT ...")``
    explains a statement. It runs the sides of joins that exclude files.

    Examples:
        >>> explained = explain(spark, "shop.orders", "order_id = 42")
        >>> explained.files_read, explained.files_total
        (2, 4)

    Raises:
        PredicateError, ColumnError: the predicate is wrong, as in ``scan``.
    """
    if predicate is None:
        return explain_statement(spark, table)
    plan = make_plan(spark, table, predicate, each=True)
    listed = None if plan.skipped_by else _listed(plan.table)
    read = set() if listed is None else _in_folders(listed, _folders(plan))
    base: dict[str, AnyValue] = {
        "table": plan.facts.sql,
        "predicate": predicate,
        "reason": plan.reason,
        "warnings": plan.warnings,
        "skipped_by": plan.skipped_by,
        "parts": _parts(plan),
        "files_total": None if listed is None else len(listed),
        "files_read": None if listed is None else len(read),
    }
    decision = plan.decision
    if decision is None:
        return Explanation(**base)
    base |= {
        "rows_total": decision.rows,
        "rows_read": decision.kept_rows,
        "bytes_total": decision.bytes,
        "bytes_read": decision.kept_bytes,
    }
    if plan.skipped_by:
        return Explanation(**base | {"files_total": decision.files, "files_read": decision.kept_files})
    if listed is not None:
        out = {_plain(path) for path, _ in decision.excluded}
        sizes = {_plain(path): (rows or 0, size or 0) for path, size, rows in decision.known}
        known = len(listed & sizes.keys())
        unknown, gone = len(listed) - known, decision.files - known
        read -= out
        base |= {"files_read": len(read), "unknown_files": unknown, "gone_files": gone}
        for place, name in enumerate(("rows_read", "bytes_read")):
            base[name] = sum(sizes[path][place] for path in read & sizes.keys())
        base["fresh"] = unknown == 0 and gone == 0 and decision.ambiguous == 0
    return Explanation(**base)


def _parts(plan: Plan) -> list[Part]:
    if plan.condition is None:
        return []
    found = list(leaves(plan.condition))
    counts = list(plan.decision.excluded_by) if plan.decision else []
    parts = []
    for number, leaf in enumerate(found):
        if isinstance(leaf, Unknown):
            parts.append(Part(leaf.text, None, leaf.reason))
        elif isinstance(leaf, Atom):
            parts.append(Part(leaf.text, counts[number] if number < len(counts) else 0))
    return parts


def _listed(frame: DataFrame) -> set[str] | None:
    try:
        return {_plain(path) for path in frame.inputFiles()}
    except Exception:  # a view over something that has no files
        return None


def _folders(plan: Plan) -> set[str] | None:
    """Return the folders that Spark lists for the predicate; None if it skips none or this process cannot see them."""
    if not plan.facts.partition_columns:
        return None
    try:
        node: AnyValue = plan.accepted._jdf.queryExecution().sparkPlan()
        while node.getClass().getSimpleName() != "FileSourceScanExec":
            node = node.child()
        parts = node.relation().location().listFiles(node.partitionFilters(), node.dataFilters())
        files = (parts.apply(number).files() for number in range(parts.size()))
        return {_plain(some.head().getPath().getParent().toUri().toString()) for some in files if not some.isEmpty()}
    except Exception:  # another version of Spark, or no JVM in this process
        return None


def _in_folders(files: set[str], folders: set[str] | None) -> set[str]:
    return files if folders is None else {file for file in files if file.rpartition("/")[0] in folders}


def _plain(path: str) -> str:
    """Return a path without the slashes of an empty authority: ``file:///a`` and ``file:/a`` are one file."""
    parts = urlsplit(path)
    return path if parts.netloc or not parts.scheme else f"{parts.scheme}:/{path[len(parts.scheme) + 1 :].lstrip('/')}"


def _number(value: int | None) -> str:
    return "?" if value is None else f"{value:,}"
