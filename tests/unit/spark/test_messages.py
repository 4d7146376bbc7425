from __future__ import annotations

import logging
import threading

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from dbt_zorder.spark.messages import full_text, in_one_line, message_of, unlogged

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

STAGE = (
    "Job aborted due to stage failure: Task 1 in stage 0.0 failed 1 times, most recent failure: Lost task 1.0 in stage "
    "0.0 (TID 1) (10.0.0.1 executor driver): "
)
WRITE = "org.apache.spark.SparkException: [TASK_WRITE_FAILED] Task failed while writing rows to file:/wh/t."


def in_a_write(class_name: str, said: str) -> str:
    """What PySpark 3.5.9 raises where a task fails that writes: twice where, and then why."""
    cause = f"Caused by: {class_name}: {said}\n\tat org.apache.spark.Foo(Foo.scala:1)\n\t... 15 more\n"
    return (
        f"An error occurred while calling o53.sql.\n: org.apache.spark.SparkException: {STAGE}{WRITE}\n"
        f"\tat org.apache.spark.sql.errors.QueryExecutionErrors$.x(X.scala:774)\n{cause}\nDriver stacktrace:\n"
        f"\tat org.apache.spark.scheduler.DAGScheduler.y(Y.scala:2898)\nCaused by: {WRITE}\n\tat z\n{cause}"
    )


ANCIENT = """[INCONSISTENT_BEHAVIOR_CROSS_VERSION.WRITE_ANCIENT_DATETIME] You may get a different result:
writing dates before 1582-10-15 into Parquet files can be dangerous.
You can set "spark.sql.parquet.datetimeRebaseModeInWrite" to "CORRECTED"."""
FETCHED = f"""An error occurred while calling o148.getResult.
: org.apache.spark.SparkException: Exception thrown in awaitResult:
\tat org.apache.spark.util.ThreadUtils$.awaitResult(ThreadUtils.scala:56)
Caused by: org.apache.spark.SparkException: {STAGE}java.lang.RuntimeException: stock must not be negative
\tat org.apache.spark.Foo

Driver stacktrace:
\tat org.apache.spark.Bar
Caused by: java.lang.RuntimeException: stock must not be negative
\tat org.apache.spark.Foo"""
SUPPRESSED = (
    "[FAILED_READ_FILE.NO_HINT] f\n\tat x\n\tSuppressed: org.apache.spark.Utils$Original: Full stacktrace\n\t\tat y\n"
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
        (in_a_write("java.lang.RuntimeException", "stock must not be negative"), "stock must not be negative"),
        (in_a_write("org.apache.spark.SparkUpgradeException", ANCIENT), ANCIENT),
        (in_a_write("org.apache.spark.api.python.PythonException", WORKER_SHORT), WORKER_SHORT),
        (FETCHED, "stock must not be negative"),
        (SUPPRESSED, "[FAILED_READ_FILE.NO_HINT] f\nf.parquet is no Parquet file"),
        (f"Job aborted.\n\tat x\nCaused by: {STAGE}java.io.IOException: disk full\n\tat y", "disk full"),
        ("java.lang.reflect.InvocationTargetException\n\tat x\nCaused by: java.io.IOException: no\n\tat y", "no"),
        ("[FAILED_EXECUTE_UDF] f(x)\n\tat x\nCaused by: a.b.CError: why\n\tat y", "[FAILED_EXECUTE_UDF] f(x)\nwhy"),
        (f"{STAGE}ExecutorLostFailure (executor 1 exited)\nDriver", "ExecutorLostFailure (executor 1 exited)\nDriver"),
        (
            "[TASK_WRITE_FAILED] Task failed while writing rows to f.",
            "[TASK_WRITE_FAILED] Task failed while writing rows to f.",
        ),
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


def test_the_reason_of_a_write_that_failed_is_said(spark: SparkSession) -> None:
    rows = spark.sql("SELECT id, if(id = 2700, raise_error('stock must not be negative'), id) AS y FROM range(3000)")
    with pytest.raises(Exception, match="stock must not be negative") as found:
        rows.write.format("parquet").save(f"{spark.conf.get('spark.sql.warehouse.dir')}/no_rows")
    assert "stock must not be negative" in message_of(found.value)
    assert "Task" not in message_of(found.value)


def test_errors_that_are_caught_are_not_printed(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    logged = records(monkeypatch)

    def ask() -> None:
        with pytest.raises(AnalysisException):
            spark.sql("SELECT nothing FROM range(1)")

    with unlogged():
        with unlogged():
            ask()
        ask()
        assert not logged
        thread = threading.Thread(target=ask)  # another thread's errors are its own
        thread.start()
        thread.join()
    ask()
    assert len(logged) == 2


def records(monkeypatch: pytest.MonkeyPatch) -> list[logging.LogRecord]:
    """Return the errors that PySpark logs from here on; a session of dbt's logs none."""
    logger = pytest.importorskip("pyspark.logger").PySparkLogger
    found: list[logging.LogRecord] = []
    handler = logging.Handler()
    monkeypatch.setattr(handler, "emit", found.append)
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        monkeypatch.delitem(logging.root.manager.loggerDict, name, raising=False)
        logger.getLogger(name).addHandler(handler)
    return found
