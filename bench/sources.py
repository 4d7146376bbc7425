"""The rows that all peers read, generated once and stored as Parquet.

``python -m bench.sources lineitem 1`` generates one data set. ``lineitem`` is TPC-H's, by its own rules; ``uniform``
and ``zipf`` are synthetic; ``flights`` are those of the demo.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np
import pyarrow.dataset as ds
from pyspark.sql import DataFrame, SparkSession

from bench.datasets import DATA, MILLION, narrow
from dbt_zorder.adapter.session.open import open_session

BATCH = "pmod(xxhash64(*), 10) = 0"
"""Which rows come once more, as an append of a tenth."""

_FLIGHTS = Path(__file__).parents[1] / "integration_tests" / "data" / "flights.parquet"
_ZIPF = 1.1


@dataclass(frozen=True)
class Source:
    """One set of rows.

    Attributes:
        name: of the set.
        scale: how large.
        keys: columns to cluster by.
    """

    name: str
    scale: float
    keys: list[str]

    @property
    def rows(self) -> Path:
        """Folder of all rows."""
        return DATA / f"{self.name}_{self.scale:g}" / "rows"

    @property
    def batch(self) -> Path:
        """Folder of a tenth of them."""
        return self.rows.with_name("batch")

    @property
    def few(self) -> Path:
        """Folder of a thousand of these."""
        return self.rows.with_name("few")

    def wheres(self, count: int) -> dict[str, list[str]]:
        """Return by key the filters of some point queries, for values of rows drawn by a seed."""
        found = {}
        for key in self.keys:
            column = ds.dataset(self.rows).to_table(columns=[key]).column(0).drop_null()
            places = np.random.default_rng(1).integers(0, len(column), count)
            found[key] = [f"{key} = {_literal(column[int(place)].as_py())}" for place in places]
        return found


KEYS = {
    "lineitem": ["l_partkey", "l_suppkey"],
    "uniform": ["customer_id", "event_ts"],
    "zipf": ["customer_id", "product_id"],
    "flights": ["tailnum", "time_hour"],
}


def source(name: str, scale: float) -> Source:
    """Return a set, made in a process of its own if it is not there yet."""
    found = Source(name, scale, KEYS[name])
    if not (found.few / "_SUCCESS").exists():
        subprocess.run([sys.executable, "-m", "bench.sources", name, str(scale)], check=True)
    return found


def make(spark: SparkSession, found: Source) -> None:
    """Write a set, its batch and a few rows of that."""
    if found.name == "lineitem":
        _lineitem(found)
    else:
        _MAKERS[found.name](spark, int(10 * MILLION * found.scale)).write.mode("overwrite").parquet(str(found.rows))
    rows = spark.read.parquet(str(found.rows))
    rows.where(BATCH).write.mode("overwrite").parquet(str(found.batch))
    spark.read.parquet(str(found.batch)).limit(1000).coalesce(1).write.mode("overwrite").parquet(str(found.few))


def zipf(spark: SparkSession, rows: int) -> DataFrame:
    """Return the narrow table with two keys whose few values have most rows, by Zipf's law with exponent 1.1."""

    def drawn(seed: int, values: int) -> str:
        most = values ** (1 - _ZIPF)
        return f"cast(pow(1 - rand({seed}) * (1 - {most}), {1 / (1 - _ZIPF)}) as bigint)"

    return narrow(spark, rows).selectExpr(
        "id",
        f"{drawn(11, MILLION)} as customer_id",
        "event_ts",
        f"cast({drawn(12, 100_000)} as int) as product_id",
        "store_id",
        "score",
        "price",
        "sku",
        "quantity",
    )


def _flights(spark: SparkSession, rows: int) -> DataFrame:
    if not _FLIGHTS.exists():
        msg = f"{_FLIGHTS} is not there; `make demo` writes it."
        raise SystemExit(msg)
    return spark.read.parquet(str(_FLIGHTS))


_MAKERS: dict[str, Callable[[SparkSession, int], DataFrame]] = {"uniform": narrow, "zipf": zipf, "flights": _flights}


def _lineitem(found: Source) -> None:
    shutil.rmtree(found.rows.parent, ignore_errors=True)
    found.rows.parent.mkdir(parents=True)
    generator = Path(sys.executable).with_name("tpchgen-cli")
    options = ["parquet", "-s", f"{found.scale:g}", "--tables", "lineitem", "--parts", "8"]
    subprocess.run([str(generator), *options, "--output-dir", str(found.rows.parent)], check=True)
    (found.rows.parent / "lineitem").rename(found.rows)


def _literal(value: object) -> str:
    if isinstance(value, datetime):
        return f"TIMESTAMP'{value:%Y-%m-%d %H:%M:%S.%f}'"
    return f"'{value}'" if isinstance(value, str) else str(value)


if __name__ == "__main__":
    name, scale = sys.argv[1], float(sys.argv[2])
    make(open_session({"spark.sql.ansi.enabled": "false"}, str(DATA / "session")), Source(name, scale, KEYS[name]))
