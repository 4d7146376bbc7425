"""Compare a seed as one DataFrame with dbt-spark's INSERT statements: ``python -m bench.seed_time``.

The time is that of the whole ``dbt seed``. Both need dbt's own part, which reads the CSV file and infers the types of
its columns. That part is also reported separately.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

from dbt.cli.main import dbtRunner
from dbt_common.clients import agate_helper

PROFILES = "seeds: {target: dev, outputs: {dev: {type: spark_zorder, schema: seeds}}}\n"
PROJECT = "name: seeds\nprofile: seeds\nflags: {send_anonymous_usage_stats: false}\n"
# dbt's own materialization, whose statements are dbt-spark's
INSERTS = """{% materialization seed, adapter='spark_zorder' %}
{{ return(materialization_seed_default()) }}
{% endmaterialization %}"""


def rows(count: int) -> str:
    """Return a CSV file of six columns: bigint, string, double, boolean, date, timestamp."""
    lines = ["id,name,amount,flag,day,at"]
    for n in range(count):
        day = f"20{n % 20:02}-{n % 12 + 1:02}-{n % 28 + 1:02}"
        lines.append(f"{n},name {n},{n / 4},{'true' if n % 2 else 'false'},{day},{day} {n % 24:02}:00:00")
    return "\n".join(lines) + "\n"


def project(folder: Path, *, macros: str) -> Path:
    """Make a dbt project with one seed."""
    for name in ("seeds", "macros"):
        (folder / name).mkdir(parents=True)
    (folder / "dbt_project.yml").write_text(PROJECT)
    (folder / "profiles.yml").write_text(PROFILES)
    (folder / "macros" / "seed.sql").write_text(macros)
    return folder


def seconds(folder: Path, content: str) -> float:
    """Return what dbt says the one seed took."""
    (folder / "seeds" / "s.csv").write_text(content)
    done = dbtRunner().invoke(["--quiet", "seed", "--project-dir", str(folder), "--profiles-dir", str(folder)])
    if not done.success:
        raise SystemExit(str(done.exception or done.result.results[0].message))  # type: ignore[union-attr]
    return float(done.result.results[0].execution_time)  # type: ignore[union-attr]


def main() -> None:
    """Load the seed by both in turn, and print the medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as root:
        ways = {
            "one DataFrame": project(Path(root) / "frame", macros=""),
            "INSERT statements": project(Path(root) / "inserts", macros=INSERTS),
        }
        content = rows(given.rows)
        found: dict[str, list[float]] = {way: [] for way in ways}
        for turn in range(given.repeats + 1):
            for way, folder in ways.items():
                # the first turn is a warm-up, with few rows
                took = seconds(folder, content if turn else rows(100))
                if turn:
                    found[way].append(took)
        started = time.monotonic()
        agate_helper.from_csv(str(ways["one DataFrame"] / "seeds" / "s.csv"), text_columns={})
        print(f"reading the file by dbt: {time.monotonic() - started:.1f} s of each")
        for way, times in found.items():
            print(f"{way}: {statistics.median(times):.1f} s ({', '.join(f'{t:.1f}' for t in times)})")


if __name__ == "__main__":
    main()
