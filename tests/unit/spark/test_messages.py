from __future__ import annotations

import pytest

from dbt_zorder.spark.messages import full_text, in_one_line, message_of

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
CAUSES = (
    "\n\tat x\nCaused by: org.apache.spark.SparkException: Exception thrown in awaitResult: \n\tat y\n"
    "Caused by: java.lang.RuntimeException: f.parquet is no Parquet file\n\tat z"
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[X] no\nline 2\n\nJVM stacktrace:\norg.apache...\n\tat x", "[X] no\nline 2"),
        ("no\n\tat org.apache.Foo\nCaused by: y", "no"),
        ("Job aborted\nDriver stacktrace:\n\tat x", "Job aborted"),
        ("An error occurred while calling o12.sql.\n: java.io.IOException: disk full\n\tat x", "disk full"),
        ("[X] no. SQLSTATE: 42703;\n'Project [*]\n+- Range", "[X] no. SQLSTATE: 42703"),
        (WORKER, WORKER_SHORT),
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
    assert message_of(ValueError(text)) == message
    assert in_one_line(ValueError(text)) == " ".join(message.split())


def test_all_that_spark_says_is_for_the_log() -> None:
    error = ValueError("no")
    assert full_text(error) == "no"
    error._stackTrace = "\tat org.apache"  # type: ignore[attr-defined]
    assert full_text(error) == "no\n\tat org.apache"
