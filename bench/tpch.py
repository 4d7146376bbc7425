"""Measure how much of TPC-H's lineitem and orders is read, by plain SQL and by ``query``: ``python -m bench.tpch``.

``tpchgen-cli`` makes the data by the official rules, ``tpch.sql`` has the 22 queries with their validation parameters.
Lineitem is z-ordered by ship date, part and supplier, orders by order date and customer, all other tables are plain.
The rows of both ways must be equal. ``--contender parquet`` (``delta``, ``iceberg``) measures plain SQL on the same
tables in that format, in a process of its own: Delta's by ``OPTIMIZE ZORDER BY``, Iceberg's by ``rewrite_data_files``.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from bench.statements import main
from bench.suites import Fact, Suite

FACTS = {
    "lineitem": Fact(["l_shipdate", "l_partkey", "l_suppkey"]),
    "orders": Fact(["o_orderdate", "o_custkey"], 1 / 4),
}
_QUERIES = Path(__file__).with_suffix(".sql")
_QUERY = re.compile(r"-- query (\d+)\n(.*?)\s*(?=\n-- query|\Z)", re.DOTALL)


def generate(folder: Path, scale: float = 1.0) -> dict[int, str]:
    """Write the tables as Parquet, unless they are there, and return the queries by number."""
    if not (folder / "_SUCCESS").exists():
        folder.mkdir(parents=True, exist_ok=True)
        generator = Path(sys.executable).with_name("tpchgen-cli")
        subprocess.run([str(generator), "parquet", "-s", f"{scale:g}", "--output-dir", str(folder)], check=True)
        (folder / "_SUCCESS").touch()
    return {int(number): text for number, text in _QUERY.findall(_QUERIES.read_text())}


SUITE = Suite("tpch", FACTS, generate)

if __name__ == "__main__":
    main(SUITE, __doc__)
