from __future__ import annotations

import pyarrow as pa
import pytest

from dbt_zorder.table.arrow_columns import Traits


@pytest.mark.parametrize(("length", "rows"), [(5, 1024), (20_000, 52), (5_000_000, 1)])
def test_pages_of_long_text_are_looked_at_sooner(length: int, rows: int) -> None:
    table = pa.table({"n": range(9), "s": ["x" * length] * 9})
    assert Traits.of(table, 100, 9).batch_rows == rows
    short = Traits.of(pa.table({"n": range(9), "s": ["x"] * 9}), 100, 9)
    assert short.beside(table.select([]), 9, length).batch_rows == rows
