#!/usr/bin/env bash
# Builds the wheel and the sdist into dist/, checks them, and runs README's quick start with the wheel in a clean environment.
set -euo pipefail
cd "$(dirname "$0")/.."
here=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"${PYTHON:-python3}" -m venv "$work/tools"
"$work/tools/bin/pip" install --quiet build twine
rm -rf dist
"$work/tools/bin/python" -m build --outdir dist . >/dev/null
"$work/tools/bin/twine" check --strict dist/*

"${PYTHON:-python3}" -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet dist/*.whl
"$work/venv/bin/dbt" --version | grep spark_zorder
"${PYTHON:-python3}" -m documents.quick_start "$work/shop"
cd "$work/shop"
"$work/venv/bin/dbt" run --profiles-dir .
"$work/venv/bin/dbt" run-operation zorder_explain --profiles-dir . --args '{model: orders, where: customer_id = 42}'
ls -l "$here/dist"
