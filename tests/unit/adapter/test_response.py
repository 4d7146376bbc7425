from __future__ import annotations

import pytest

from dbt_zorder.adapter.response import ZorderResponse, status_line
from dbt_zorder.table.build import BuildReport
from dbt_zorder.table.summary import Summary


@pytest.mark.parametrize(
    ("files", "touched", "line"),
    [
        (16, {"id": 4.0, "ts": 4.04}, "zorder: 16 files, point query on id reads 4 of 16, ts 4 of 16"),
        (16, {"a b": 4.26, "c d": 10.0}, "zorder: 16 files, point query on a b reads 4.3 of 16, c d 10 of 16"),
        (2, {"a": 1.0}, "zorder: 2 files, point query on a reads 1 of 2"),
        (1, {"a": 1.0}, "zorder: 1 file"),
        (0, {"a": 0.0}, "zorder: 0 files"),
    ],
)  # fmt: skip
def test_the_line_says_what_a_point_query_reads(files: int, touched: dict[str, float], line: str) -> None:
    assert status_line(files, touched) == line


def test_run_results_get_all_figures_and_dbt_the_line() -> None:
    summary = Summary(files=2, rows=7, bytes=99, point_query_files={"a": 1.5})
    response = ZorderResponse.of(BuildReport("v1", summary, {"sample": 0.1}, []))
    assert str(response) == "zorder: 2 files, point query on a reads 1.5 of 2"
    assert response.to_dict(omit_none=True) == {
        "_message": str(response),
        "code": "OK",
        "rows_affected": 7,
        "files_written": 2,
        "bytes_written": 99,
        "zorder_by": ["a"],
        "version": "v1",
        "seconds": {"sample": 0.1},
        "point_query_files": {"a": 1.5},
    }
