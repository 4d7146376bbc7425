from __future__ import annotations

import pytest
from dbt_common.exceptions import DbtDatabaseError, DbtRuntimeError

from dbt_zorder.adapter.spark_errors import full_text, short_message, told

WORKER = """Job aborted due to stage failure: Task 0 in stage 1.0 failed 4 times, most recent failure: \
Lost task 0.3 in stage 1.0 (TID 4) (10.0.0.1 executor 2): org.apache.spark.api.python.PythonException: \
Traceback (most recent call last):
  File "/opt/lib/python3.11/site-packages/pyspark/python/lib/pyspark.zip/pyspark/worker.py", line 1247, in main
    process()
  File "models/m.py", line 4, in helper
ZeroDivisionError: division by zero

\tat org.apache.spark.api.python.BasePythonRunner
"""
WORKER_SHORT = """Traceback (most recent call last):
  File "models/m.py", line 4, in helper
ZeroDivisionError: division by zero"""
PARSE = """[PARSE_SYNTAX_ERROR] Syntax error at or near 'c'. SQLSTATE: 42601 (line 5, pos 4)

== SQL ==
/* app */
select 1,

  2,
a b c
----^^^
from t
"""
PARSE_SHORT = """[PARSE_SYNTAX_ERROR] Syntax error at or near 'c'. SQLSTATE: 42601 (line 5, pos 4)
== SQL ==
select 1,
  2,
a b c
----^^^"""
CAUSES = (
    "\n\tat x\nCaused by: org.apache.spark.SparkException: Exception thrown in awaitResult: \n\tat y\n"
    "Caused by: java.lang.RuntimeException: f.parquet is no Parquet file\n\tat z"
)
DIVISION = "[DIVIDE_BY_ZERO] Division by zero.\n== SQL (line 2, position 3) ==\n1 / 0\n^^^^^\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[X] no\nline 2\n\nJVM stacktrace:\norg.apache...\n\tat x", "[X] no\nline 2"),
        ("no\n\tat org.apache.Foo\nCaused by: y", "no"),
        ("Job aborted\nDriver stacktrace:\n\tat x", "Job aborted"),
        ("An error occurred while calling o12.sql.\n: java.io.IOException: disk full\n\tat x", "disk full"),
        ("[X] no. SQLSTATE: 42703;\n'Project [*]\n+- Range", "[X] no. SQLSTATE: 42703"),
        (WORKER, WORKER_SHORT),
        (PARSE, PARSE_SHORT),
        (DIVISION, DIVISION.strip()),
        (f"org.apache.spark.SparkException: Exception thrown in awaitResult:{CAUSES}", "f.parquet is no Parquet file"),
        ("Exception thrown in awaitResult: ", "Exception thrown in awaitResult:"),
        (f"[FAILED_READ_FILE.NO_HINT] f{CAUSES}", "[FAILED_READ_FILE.NO_HINT] f\nf.parquet is no Parquet file"),
        ("[FAILED_READ_FILE.NO_HINT] f", "[FAILED_READ_FILE.NO_HINT] f"),
        ("plain", "plain"),
        ("", "ValueError"),
        ("\tat x", "ValueError"),
    ],
)
def test_plans_and_stack_traces_are_left_out(text: str, message: str) -> None:
    assert short_message(ValueError(text)) == message


@pytest.mark.parametrize(
    ("position", "pointed"),
    [
        ("line 2 pos 2", "\n== SQL ==\n  nope.x,\n  ^^^^^^"),
        ("line 3 pos 0", "\n== SQL ==\n`a b`\n^^^^^"),
        ("line 1 pos 6", "\n== SQL ==\nselect\n      ^"),
        ("line 9 pos 2", ""),
    ],
)
def test_the_line_that_a_message_points_to_is_shown(position: str, pointed: str) -> None:
    error = ValueError(f"[X] no; {position};\n'Project [nope]")
    assert short_message(error, "select\n  nope.x,\n`a b`\n1") == f"[X] no; {position}{pointed}"


def test_all_that_spark_says_is_for_the_log() -> None:
    error = ValueError("no")
    assert full_text(error) == "no"
    error._stackTrace = "\tat org.apache"  # type: ignore[attr-defined]
    assert full_text(error) == "no\n\tat org.apache"


def test_an_error_of_dbts_own_is_raised_as_it_is() -> None:
    mine = DbtRuntimeError("mine")
    with pytest.raises(DbtRuntimeError) as found, told("select 1"):
        raise mine
    assert found.value is mine
    with pytest.raises(DbtDatabaseError, match="boom"), told("select 1"):
        raise ValueError("boom")
