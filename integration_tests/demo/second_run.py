"""What a second run of incremental models reads and writes."""

from __future__ import annotations

import re

from rich.console import Console
from rich.table import Table

from integration_tests.demo.project import run_dbt

SOURCE, READER, MERGED = "flights_log", "delays_by_hour", "flights_board"


def show_second_run(console: Console) -> None:
    """Run the incremental models once more under ``zorder_prune: true``, and print a table of each."""
    run = run_dbt("run", "--target", "pruned", "--select", SOURCE, READER, MERGED)
    # the source itself asks for its latest hour before, which reads no file
    *_, (read, of) = re.findall(rf"`{SOURCE}`: (\d+) of (\d+) files are read", run.log)
    table = Table(title="3. An incremental model reads only new files", show_header=False)
    table.add_row(f"new rows of {SOURCE}", f"{run.responses[SOURCE]['rows_affected']:,}")
    table.add_row(f"files that {READER} reads of it", f"{read} of {of}")
    console.print(table)

    response = run.responses[MERGED]
    counts = response["merged"]
    table = Table(title="4. A merge writes only files with a changed row", show_header=False)
    for what in ("inserted", "updated", "unchanged"):
        table.add_row(f"rows {what} in {MERGED}", f"{counts[what]:,}")
    table.add_row("files replaced", f"{counts['rewritten']} of {counts['rewritten'] + counts['shared']}")
    table.add_row("files written", str(response["files_written"]))
    table.add_row("files shared with the version before", str(counts["shared"]))
    console.print(table)
