"""Explain which files a statement reads of each table, and why."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any

from pyspark.sql import SparkSession
from rich.console import Group
from rich.table import Table
from rich.text import Text

from dbt_zorder.humanize import printed, size_text
from dbt_zorder.pruning.plain_sql.statement import TableRead, prepare


@dataclass(frozen=True)
class StatementExplanation:
    """Share of its tables that a statement reads.

    Attributes:
        sql: statement as given.
        places: reads of z-ordered tables, in the order of the text.
        reason: why no file is excluded; empty if files are excluded, or no table has statistics.
        seconds: time to choose the files, with the runs of joined sides.
    """

    sql: str
    places: tuple[TableRead, ...]
    reason: str
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Return all attributes as plain values, ready for JSON."""
        return asdict(self)

    def __rich__(self) -> Group:
        table = Table("table", "files", "of", "bytes", "of", "excluded by, or why not")
        for place in self.places:
            why = ", ".join(place.rules) or f"all files are read: {place.reason}"
            files = (f"{place.files_read:,}", f"{place.files:,}")
            table.add_row(Text(place.table), *files, size_text(place.bytes_read), size_text(place.bytes), Text(why))
        lines = [Text(f"No file is excluded: {self.reason}.")] if self.reason and not self.places else []
        if not self.places and not self.reason:
            lines.append(Text("The statement reads no table with statistics."))
        lines.append(Text(f"Choosing the files took {self.seconds:.2f} s."))
        return Group(*([table] if self.places else []), *lines)

    def __str__(self) -> str:
        return printed(self, width=140)


def explain_statement(spark: SparkSession, sql: str) -> StatementExplanation:
    """Return what ``query`` would read of a statement's tables, and why. Runs the sides of joins that exclude files."""
    started = time.perf_counter()
    pruned = prepare(spark, sql)
    return StatementExplanation(sql, pruned.places, pruned.reason, time.perf_counter() - started)
