from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from dbt_zorder.engine.equal_bytes import of_equal_bytes
from dbt_zorder.engine.local.fetched_keys import FetchedKeys, fetch
from dbt_zorder.engine.local.place import rows_of_files
from dbt_zorder.engine.local.shuffle import Share
from dbt_zorder.layout.layout import Layout
from dbt_zorder.layout.lengths import lengths_of_files
from dbt_zorder.layout.plan import Plan, make_plan
from dbt_zorder.layout.spec import LayoutSpec, keys_for

ROWS, TARGET = 60_000, 100_000


@dataclass
class KnownRows:
    """Rows whose lengths, and bytes in files, a test says.

    Attributes:
        keys: of the rows.
        lengths: of each.
        taken: bytes of each.
        asked: how many files were measured, each time.
    """

    keys: FetchedKeys
    lengths_of_rows: npt.NDArray[np.float64]
    taken: npt.NDArray[np.float64]
    asked: list[int] = field(default_factory=list)

    def lengths(self, layout: Layout) -> npt.NDArray[np.float64]:
        return lengths_of_files(layout, self.keys.keys, self.lengths_of_rows)

    def sizes(self, layout: Layout, files: Sequence[int]) -> Mapping[int, Share]:
        self.asked.append(len(files))
        found = self.of_files(layout)
        return {file: found[file] for file in files if file in found}

    def drawn(self, plan: Plan, rows: int) -> tuple[FetchedKeys, npt.NDArray[np.float64]]:
        chosen = np.sort(np.random.default_rng(1).choice(ROWS, min(rows, ROWS), replace=False))
        return FetchedKeys(self.keys.keys.take(pa.array(chosen))), self.lengths_of_rows[chosen]

    def of_files(self, layout: Layout) -> dict[int, Share]:
        found = rows_of_files(self.keys.keys, layout)
        return {file: Share(len(rows), int(self.taken[rows].sum())) for file, rows in found.items()}


class Unmeasured(KnownRows):
    """Rows whose files are too large to be measured."""

    def sizes(self, layout: Layout, files: Sequence[int]) -> Mapping[int, Share]:
        return {}


def known(spark: SparkSession, kind: str, **spec: object) -> tuple[Plan, KnownRows]:
    query = spark.sql(
        f"SELECT id, pmod(hash(id), 5000) AS a, pmod(hash(id, 7), 900) AS b, id % 5 = 0 AS p FROM range({ROWS})"
    )
    wanted = LayoutSpec(by=["a", "b"], file_size=TARGET, **spec)  # type: ignore[arg-type]
    a = np.asarray([row[0] for row in query.select("a").collect()], dtype=np.float64)
    lengths, taken = lengths_and_bytes(kind, a)
    rows = fetch(query, keys_for(query, wanted), 1 << 24, ROWS, [])
    assert rows is not None
    measured = KnownRows(rows, lengths, taken)
    plan = make_plan(query, LayoutSpec(**{**vars(wanted), "row_bytes": float(taken.mean())}), rows)
    return plan, measured


Values = npt.NDArray[np.float64]


def lengths_and_bytes(kind: str, a: Values) -> tuple[Values, Values]:
    """Return lengths of rows, and the bytes that each takes."""
    if kind == "by length":
        lengths = np.where(a > 4000.0, 300.0, 12.0) * np.random.default_rng(0).uniform(0.2, 1.8, ROWS)
        return lengths, 3 + 0.8 * lengths
    if kind == "few":
        lengths = np.where(a > 4960.0, 3000.0, 20.0)
        return lengths, lengths
    in_part = np.where(a > 3300.0, 70.0, 5.0)
    return {
        "alike": (np.full(ROWS, 20.0), np.full(ROWS, 15.0)),
        "by nothing": (np.full(ROWS, 90.0), in_part),
        "against lengths": (100 - in_part, in_part),
        "no text": (np.zeros(ROWS), in_part),
    }[kind]


@pytest.mark.parametrize("curve", ["zorder", "hilbert", "linear"])
@pytest.mark.parametrize(
    "kind",
    ["alike", "by length", "by nothing", "against lengths", "few", "no text"],
)
def test_files_have_about_as_many_bytes(spark: SparkSession, kind: str, curve: str) -> None:
    plan, rows = known(spark, kind, curve=curve)
    found = of_equal_bytes(plan, float(rows.taken.mean()), rows).layout
    sizes = np.asarray([share.nbytes for share in rows.of_files(found).values()])
    assert len(sizes) == found.files == pytest.approx(rows.taken.sum() / TARGET, abs=1)
    assert np.median(sizes) == pytest.approx(TARGET, rel=0.15)
    assert sizes.max() <= 1.35 * TARGET
    if kind in ("alike", "by length", "few"):
        assert len(rows.asked) <= 3, "lengths tell, and a check or two"


def test_what_cannot_be_measured_stays_as_it_is(spark: SparkSession) -> None:
    plan, rows = known(spark, "by nothing")
    found = of_equal_bytes(plan, 30.0, Unmeasured(rows.keys, rows.lengths_of_rows, rows.taken))
    assert found.layout.files == round(30 * ROWS / TARGET)
