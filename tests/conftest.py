"""One Spark session for the whole run: it takes seconds to start, and dbt's own threads share it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pyspark
import pytest
from pyspark.sql import SparkSession

pytest_plugins = ["dbt.tests.fixtures.project"]

FORMATS_HERE = [os.environ["ZORDER_FORMAT"]] if os.environ.get("ZORDER_FORMAT") else []
"""File format, besides Parquet, that this run's session is set up for: ``delta`` or ``iceberg``."""

SERVERS_HERE = [os.environ["ZORDER_SERVER"]] if os.environ.get("ZORDER_SERVER") else []
"""Server that this run's session is on: ``s3`` or ``metastore``."""

collect_ignore = [*([] if FORMATS_HERE else ["formats"]), *([] if SERVERS_HERE else ["servers"])]

SHARES = {
    "tests/faults/test_environment.py": 24,
    "tests/faults/test_exceptions.py": 18,
    "tests/faults/test_interleavings.py": 24,
    "tests/faults/test_two_metastores.py": 3,
    "tests/formats/test_build.py": 8,
    "tests/formats/test_carry.py": 2,
    "tests/formats/test_incremental.py": 8,
    "tests/formats/test_delta_files.py": 2,
    "tests/formats/test_bounds.py": 4,
    "tests/formats/test_merge_oracle.py": 4,
    "tests/formats/test_meanwhile.py": 6,
    "tests/functional/adapter/test_simple_seed.py": 4,
    "tests/functional/test_advice.py": 5,
    "tests/functional/test_changes.py": 6,
    "tests/functional/test_incremental.py": 8,
    "tests/functional/test_incremental_columns.py": 4,
    "tests/functional/test_merge.py": 2,
    "tests/functional/test_rights.py": 4,
    "tests/functional/test_stale_list.py": 4,
    "tests/functional/test_prune.py": 4,
    "tests/functional/test_habits.py": 3,
    "tests/ownership/test_least_sequences.py": 4,
    "tests/released/test_released.py": 2,
    "tests/soundness/test_adversarial_stats.py": 2,
    "tests/soundness/test_historical_bugs.py": 3,
    "tests/soundness/test_file_paths.py": 3,
    "tests/unit/advice/test_sampling.py": 4,
    "tests/unit/curve/test_bits.py": 2,
    "tests/unit/curve/test_tree.py": 4,
    "tests/unit/curve/test_hilbert.py": 2,
    "tests/unit/engine/local/spool/test_arrow_files.py": 3,
    "tests/unit/layout/test_bit_keys.py": 3,
    "tests/unit/test_cluster.py": 8,
    "tests/unit/engine/local/spool/test_spool.py": 2,
    "tests/unit/engine/spark/test_curve_sql.py": 2,
    "tests/unit/layout/test_curves.py": 3,
    "tests/unit/engine/local/test_curve_keys.py": 3,
    "tests/unit/engine/spark/test_decisions.py": 4,
    "tests/unit/engine/spark/test_descent.py": 2,
    "tests/unit/engine/local/test_fetched_keys.py": 4,
    "tests/unit/engine/spark/test_generated_code.py": 10,
    "tests/unit/layout/test_batches.py": 2,
    "tests/unit/layout/test_keys.py": 5,
    "tests/unit/engine/local/test_place.py": 6,
    "tests/unit/layout/test_plan.py": 2,
    "tests/unit/engine/spark/test_runs.py": 2,
    "tests/unit/layout/test_layout_json.py": 4,
    "tests/unit/pruning/predicate/test_functions.py": 2,
    "tests/unit/pruning/files/test_session_settings.py": 3,
    "tests/unit/pruning/condition/test_times.py": 2,
    "tests/unit/pruning/predicate/test_parse.py": 2,
    "tests/unit/pruning/files/test_partitioned.py": 2,
    "tests/unit/pruning/test_scan.py": 5,
    "tests/unit/pruning/test_selfcheck.py": 3,
    "tests/unit/pruning/condition/test_bounds.py": 4,
    "tests/unit/pruning/condition/test_clock_bounds.py": 4,
    "tests/unit/pruning/condition/test_translate.py": 2,
    "tests/unit/pruning/joins/test_pruner.py": 2,
    "tests/unit/pruning/top_rows/test_limits.py": 3,
    "tests/unit/pruning/top_rows/test_pruner.py": 5,
    "tests/unit/pruning/plain_sql/test_metadata_answers.py": 5,
    "tests/unit/pruning/plain_sql/test_clock.py": 3,
    "tests/unit/pruning/plain_sql/test_fixed_values.py": 4,
    "tests/unit/pruning/plain_sql/test_catalyst.py": 3,
    "tests/unit/pruning/plain_sql/test_statement.py": 9,
    "tests/unit/stats/test_portability.py": 4,
    "tests/unit/stats/test_column_case.py": 3,
    "tests/unit/tables/parquet/test_advice.py": 4,
    "tests/unit/tables/parquet/test_append.py": 16,
    "tests/unit/tables/parquet/buckets/test_bucket_ids.py": 16,
    "tests/unit/engine/parquet/test_column_options.py": 4,
    "tests/unit/engine/parquet/test_writer.py": 4,
    "tests/unit/tables/test_two_step_swap.py": 3,
    "tests/unit/tables/parquet/test_build.py": 10,
    "tests/unit/tables/parquet/test_build_columns.py": 6,
    "tests/unit/tables/parquet/test_build_failures.py": 7,
    "tests/unit/tables/parquet/test_build_queries.py": 6,
    "tests/unit/engine/local/test_large_table.py": 2,
    "tests/unit/engine/test_choose.py": 4,
    "tests/unit/tables/parquet/test_incremental.py": 2,
    "tests/unit/tables/parquet/merge/test_merge_batch.py": 2,
    "tests/unit/tables/parquet/test_nested_changes.py": 4,
    "tests/unit/engine/local/test_nested_rows.py": 2,
    "tests/unit/tables/parquet/retention/test_ownership.py": 4,
    "tests/unit/tables/test_opened.py": 3,
    "tests/unit/engine/test_file_size.py": 10,
    "tests/unit/spark/test_plain_names.py": 4,
    "tests/unit/tables/parquet/operations/test_drop.py": 3,
    "tests/unit/tables/test_reserved.py": 4,
    "tests/unit/tables/parquet/operations/test_rollback.py": 3,
    "tests/unit/tables/parquet/test_same_again.py": 5,
    "tests/unit/engine/local/test_file_writer.py": 3,
    "tests/unit/tables/parquet/test_snapshot.py": 3,
    "tests/unit/tables/parquet/retention/test_surroundings.py": 3,
    "tests/unit/tables/parquet/test_swap.py": 2,
    "tests/unit/tables/parquet/operations/test_vacuum.py": 3,
    "tests/unit/tables/parquet/operations/test_verify.py": 7,
}
"""Number n by file: ``-m "not slow"`` runs every n-th test of the file, and ``make test-all`` all."""

TURN = 497_363
"""Which of every n tests it is. Raise it with a change of yours: what is in the other shares fails unseen.

It is written down, so that what has passed for one passes for all. ``TURN=3 make test`` asks for another by itself.
"""


def pytest_report_header() -> str:
    """Say how to run the same share of the tests again."""
    return f"share of the tests: TURN={TURN}"


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print what a test has measured of itself, also one that ran in another process."""
    for outcome in ("passed", "failed"):
        for report in terminalreporter.stats.get(outcome, []):
            for name, text in report.user_properties:
                if name == "summary":
                    terminalreporter.write_line(f"{report.nodeid}: {text}")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as slow what is beyond the share of its file."""
    files: dict[str, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.nodeid.partition("::")[0], []).append(item)
    for module, cases in files.items():
        share = min(SHARES.get(module, 1), len(cases))
        for place, item in enumerate(cases):
            if place % share != TURN % share:
                item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def session_dir(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the folder that holds this run's own metastore and warehouse."""
    return str(tmp_path_factory.mktemp("session"))


@pytest.fixture(scope="session")
def spark(session_dir: str) -> Iterator[SparkSession]:
    """Return the session, with the settings that the adapter gives every session that it opens."""
    from dbt_zorder.adapter.session.format_packages import format_settings
    from dbt_zorder.adapter.session.open import open_session

    settings = {
        "spark.sql.ansi.enabled": "false",
        "spark.sql.shuffle.partitions": "3",
        "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",  # Spark 4's default; 3.5 refuses old dates
    }
    session = open_session(format_settings(FORMATS_HERE, settings, pyspark.__version__), session_dir)
    yield session
    session.stop()


@pytest.fixture(scope="class")
def dbt_profile_target(spark: SparkSession, session_dir: str) -> dict[str, Any]:
    """Return dbt's target: it opens no session of its own, but finds that of this process."""
    return {"type": "spark_zorder", "schema": "set by dbt's own fixtures", "threads": 2, "session_dir": session_dir}
