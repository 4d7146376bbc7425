from __future__ import annotations

from dbt_zorder.adapter.messages.response import ZorderResponse
from dbt_zorder.stats.summary import Summary
from dbt_zorder.tables.report import AppendReport, BuildReport, IncrementReport, Outcome


def test_run_results_get_all_figures_and_dbt_the_line() -> None:
    summary = Summary(files=2, rows=7, bytes=99, point_query_files={"a": 1.5})
    response = ZorderResponse.of(Outcome.of_build(BuildReport("v1", summary, {"sample": 0.1}, [])))
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


def test_dbt_gets_a_number_for_rows_that_nobody_knows_and_a_line_where_nothing_was_done() -> None:
    merged = IncrementReport(AppendReport(None, 1, 40, 2, {"write": 1.0}), None, None, "7")
    response = ZorderResponse.of(Outcome.of_increment(merged))
    assert (response.rows_affected, response.files_replaced, response.appended) == (-1, 2, True)
    assert str(response) == "zorder: merged, 1 file in place of 2 files"
    assert str(ZorderResponse.of(None)) == "zorder: no changes, nothing written"
