"""Compare dbt-zorder with its peers: ``python -m bench.peers``.

Every session runs in its own process, one after the other. All sessions share ORDER BY as a contender, and each ratio
is to ORDER BY in the same session. Rows, Spark and codec are the same for all. A contender that accepts a file size in
place of a number receives a sixteenth of the bytes that it has written. It receives a larger size if that gave too many
files.

A pipeline runs once to warm up. Then it runs several times in rounds, with contenders and columns in another order each
round. A second run follows once after an append of a thousand rows. Then three appends of the same tenth run in rounds.
Figures of other sessions for the same scale and number of files are kept.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyspark
from rich.console import Console

from bench.contenders import ORDER, OUTPUT, SCHEMA, Contender, Folder, Task
from bench.figures import figures_beside, keep_figures
from bench.measure import SETTINGS, Cost, Meter, ProcessMeter, in_order_of
from bench.peers_report import report
from bench.roster import HUDI, SESSIONS, contenders
from bench.skipping import Blocks
from bench.sources import KEYS, Source, source
from dbt_zorder.adapter.session.format_packages import format_settings
from dbt_zorder.adapter.session.open import open_session
from dbt_zorder.stats.table_state import FORMATS

RESULTS = Path(__file__).parent / "results"
QUERIES = 300
"""Queries of each kind that are counted by the files' own ranges."""

TIMED = 10
"""Point queries of each column that are run and timed."""

WARM = 4
"""Point queries of each column that are run before those."""

APPENDS = 3
"""Appends of the same tenth, one after the other; their median counts."""

Line = dict[str, Any]


@dataclass
class Race:
    """The measurements of one session, line by line as they come."""

    session: str
    data: str
    task: Task
    source: Source
    meter: Meter | ProcessMeter
    lines: list[Line]

    def note(self, name: str, measure: str, value: float, column: str = "") -> None:
        """Keep one figure."""
        self.lines.append(
            {
                "data": self.data,
                "session": self.session,
                "contender": name,
                "measure": measure,
                "column": column,
                "value": round(value, 4),
            }
        )

    def costs(self, name: str, measure: str, costs: Sequence[Cost]) -> None:
        """Keep what the runs of a step took: the median, and for its seconds also the least and the most."""
        walls = [cost.wall for cost in costs]
        self.note(name, f"{measure}_seconds", _median(walls))
        self.note(name, f"{measure}_cpu_seconds", _median([cost.cpu for cost in costs]))
        self.note(name, f"{measure}_peak_bytes", max(cost.peak for cost in costs))
        if len(costs) > 1:
            self.note(name, f"{measure}_seconds_least", min(walls))
            self.note(name, f"{measure}_seconds_most", max(walls))

    def build(self, field: Sequence[Contender], repeats: int) -> None:
        """Let all build the table in turn, once to warm up, and keep the medians of both steps."""
        found: dict[str, list[tuple[Cost, Cost]]] = {one.name: [] for one in field}
        for turn in range(repeats + 1):
            self.task.turn = turn
            for one in in_order_of(turn, field):
                one.clear()
                wrote = self.meter.measure(partial(one.write, self.source.rows))
                one.size = sum(path.stat().st_size for path in one.paths()) // self.task.files
                laid_out = self.meter.measure(one.lay_out)
                one.learn()
                if turn:
                    found[one.name].append((wrote, laid_out))
        for one in field:
            runs = found[one.name]
            both = [Cost(a.wall + b.wall, a.cpu + b.cpu, max(a.peak, b.peak)) for a, b in runs]
            self.costs(one.name, "pipeline", both)
            if type(one).lay_out is not Contender.lay_out:
                self.costs(one.name, "rewrite", [b for _, b in runs])

    def reads(self, one: Contender, when: str = "") -> None:
        """Keep what queries on a table cannot skip."""
        paths = one.paths()
        keys = self.task.keys
        blocks = Blocks(paths, keys)
        self.note(one.name, f"files{when}", len(paths))
        self.note(one.name, f"bytes{when}", sum(path.stat().st_size for path in paths))
        for (kind, key), queries in blocks.kinds(keys, QUERIES).items():
            found = blocks.touched(queries)
            self.note(one.name, f"{kind}{when}_files", found.files, key)
            if not when:
                self.note(one.name, f"{kind}_row_groups", found.row_groups, key)
                self.note(one.name, f"{kind}_pages", found.pages, key)
                self.note(one.name, f"{kind}_bytes", found.bytes, key)
        if not when:
            self.note(one.name, "row_groups", len(blocks.starts["row_groups"]))
            self.note(one.name, "pages", len(blocks.starts["pages"]))

    def queries(self, field: Sequence[Contender], wheres: Mapping[str, Sequence[str]]) -> None:
        """Count the rows of point queries by all, each filter in another order; their counts must be equal.

        Each asks twice, and the second time counts: code that Spark has compiled for one contender serves others whose
        plans are alike, so the first time would tell of the order.
        """
        ways = {(one.name, way): count for one in field for way, count in one.ways_to_ask().items()}
        seconds: dict[tuple[str, str, str], list[float]] = {(*way, key): [] for way in ways for key in wheres}
        rows = dict.fromkeys(wheres, 0)
        for number, filters in enumerate(zip(*wheres.values(), strict=True)):
            for key, where in zip(wheres, filters, strict=True):
                counts = set()
                for way in in_order_of(number, ways):
                    counts.add(ways[way](where))
                    started = time.monotonic()
                    counts.add(ways[way](where))
                    if number >= WARM:
                        seconds[(*way, key)].append(time.monotonic() - started)
                if len(counts) != 1:
                    msg = f"The contenders differ in how many rows have {where}: {counts}"
                    raise AssertionError(msg)
                rows[key] += counts.pop()
        for key in wheres:
            self.note("", "query_rows", rows[key], key)
        for (name, measure, key), found in seconds.items():
            self.note(name, f"{measure}_seconds", _median(found), key)

    def later(self, field: Sequence[Contender]) -> None:
        """Append a few rows to warm up; run again without new rows, then some times with a tenth more of them."""
        for one in in_order_of(1, field):
            one.add(self.source.few)
        for one in in_order_of(2, field):
            before = set(one.paths())
            if type(one).lay_out is not Contender.lay_out or type(one).again is not Contender.again:
                self.costs(one.name, "again", [self.meter.measure(one.again)])
                self.note(one.name, "again_new_files", len(set(one.paths()) - before))
        found: dict[str, list[Cost]] = {one.name: [] for one in field}
        for turn in range(APPENDS):
            for one in in_order_of(turn, field):
                found[one.name].append(self.meter.measure(partial(one.add, self.source.batch)))
                if not turn:
                    self.reads(one, "_after_append")
        for name, costs in found.items():
            self.costs(name, "append", costs)


def run(session: str, data: str, scale: float, files: int, repeats: int, without: Sequence[str] = ()) -> list[Line]:
    """Run one session, in this process, without those whose names hold one of some words."""
    rows = source(data, scale)
    task = Task(rows.keys, files)
    race = Race(session, data, task, rows, ProcessMeter(), [])
    if session != "delta-rs":
        formats = [session] if session in FORMATS else []
        user = {**SETTINGS, "spark.sql.session.timeZone": "UTC", **(HUDI if session == "hudi" else {})}
        settings = format_settings(formats, user, pyspark.__version__)
        task.session = open_session(settings, str(OUTPUT / f"session_{session}"))
        task.session.sql(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
        race.meter = Meter(task.session)
    field = [one for one in contenders(session, task) if not any(word in one.name for word in without)]
    race.build(field, repeats)
    for one in field:
        race.reads(one)
    race.queries(field, rows.wheres(WARM + TIMED))
    race.later([one for one in field if type(one) is not Folder])  # a copy has no order to keep
    return race.lines


def _median(values: Sequence[float]) -> float:
    return float(statistics.median(values)) if values else 0.0


def _runs(repeats: Mapping[str, int]) -> str:
    """Say how often the pipelines of each session were run."""
    fewest = min(repeats.values())
    others = [f", {count} in the session {session}" for session, count in repeats.items() if count != fewest]
    return f"{fewest} run{'s' if fewest > 1 else ''} of each pipeline{''.join(others)}"


def main() -> None:
    """Run every session, keep the figures as CSV, print the table and draw the plots."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="*", default=["lineitem"], choices=list(KEYS))
    parser.add_argument(
        "--scale", type=float, default=1.0, help="1 is 6 M rows of lineitem, 10 M of the synthetic sets"
    )
    parser.add_argument("--files", type=int, default=16)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--sessions", nargs="*", default=list(SESSIONS[:-1]), choices=SESSIONS)
    parser.add_argument("--hudi", default=sys.executable, help="a Python with PySpark 3.5, for the session 'hudi'")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the figures and plots")
    parser.add_argument("--without", nargs="*", default=[], help="leave out contenders whose names hold these words")
    parser.add_argument("--alone", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.alone:
        alone = run(
            arguments.alone, arguments.data[0], arguments.scale, arguments.files, arguments.repeats, arguments.without
        )
        Path(arguments.out).write_text(json.dumps(alone), encoding="utf-8")
        return
    arguments.out.mkdir(parents=True, exist_ok=True)
    for data in arguments.data:
        source(data, arguments.scale)
        path = arguments.out / f"peers_{data}{'_hudi' if arguments.sessions == ['hudi'] else ''}.csv"
        how = {"scale": f"{arguments.scale:g}", "files": str(arguments.files)}
        beside = figures_beside(path, ["session"], [[session] for session in arguments.sessions])
        # without an ORDER BY of its own, as delta-rs, a session is compared with the first one: it goes where that does
        based = {
            line["session"] for line in beside if line["contender"] == ORDER or SESSIONS[0] not in arguments.sessions
        }
        lines: list[Line] = [line for line in beside if line["session"] in based and how.items() <= line.items()]
        for session in arguments.sessions:
            part = OUTPUT / f"{session}.json"
            part.parent.mkdir(parents=True, exist_ok=True)
            options = ["--data", data, "--scale", str(arguments.scale), "--files", str(arguments.files)]
            options += ["--repeats", str(arguments.repeats), "--alone", session, "--out", str(part)]
            options += ["--without", *arguments.without]
            python = arguments.hudi if session == "hudi" else sys.executable
            subprocess.run([python, "-m", "bench.peers", *options], check=True)
            told_apart = {**how, "repeats": str(arguments.repeats)}
            lines += [{**line, **told_apart} for line in json.loads(part.read_text(encoding="utf-8"))]
            lines.sort(key=lambda line: SESSIONS.index(line["session"]))
            shutil.rmtree(OUTPUT, ignore_errors=True)
            keep_figures(lines, path)  # session by session, as a run of all of them is long
        runs = _runs({line["session"]: int(line["repeats"]) for line in lines})
        report(path, f"{data}, scale {arguments.scale:g}, {arguments.files} files, {runs}", Console(width=200))


if __name__ == "__main__":
    main()
