from __future__ import annotations

import ast
import doctest
import re
from pathlib import Path
from types import FunctionType

from pyspark.sql import SparkSession

from dbt_zorder import api

ROOT = Path(__file__).parents[2]


def test_all_that_is_exported_is_there_and_documented() -> None:
    assert sorted(api.__all__) == api.__all__
    assert all(getattr(api, name).__doc__ for name in api.__all__)


def test_all_that_is_exported_is_on_its_page() -> None:
    page = (ROOT / "docs" / "reference" / "python-api.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"heading: (\w+)", page)) == api.__all__


def test_examples_and_documents_import_functions_from_the_api_alone() -> None:
    texts = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "integration_tests").rglob("*.py")]
    allowed = {"dbt_zorder.api", "dbt_zorder.adapter.session.open", "dbt_zorder.adapter.session.format_packages"}
    for path in texts:
        lines = [line for line in path.read_text().splitlines() if line.startswith("from dbt_zorder")]
        modules = {node.module for line in lines for node in ast.parse(line).body if isinstance(node, ast.ImportFrom)}
        assert modules <= allowed, path


def test_the_examples_of_docstrings_run(spark: SparkSession, database: str) -> None:
    names = {**{name: getattr(api, name) for name in api.__all__}, "spark": spark}
    for name in ["save_table", *(name for name in api.__all__ if name != "save_table")]:  # the others read its table
        text = (getattr(api, name).__doc__ or "").replace("shop.", f"{database}.")
        test = doctest.DocTestParser().get_doctest(text, names, name, None, None)
        assert doctest.DocTestRunner(verbose=False).run(test).failed == 0, name


def test_every_function_has_an_example() -> None:
    functions = {name: value for name in api.__all__ if isinstance(value := getattr(api, name), FunctionType)}
    without = [name for name, function in functions.items() if ">>> " not in (function.__doc__ or "")]
    assert without == ["cluster"]  # its example writes a folder


def test_a_table_is_saved_read_and_explained(spark: SparkSession, database: str) -> None:
    name = f"{database}.api"
    saved = api.save_table(spark.range(100).selectExpr("id", "id % 7 AS k"), name, ["id", "k"], files=4)
    assert "4 files" in str(saved)
    assert api.scan(spark, name, "id = 42").count() == 1
    assert api.query(spark, f"SELECT k FROM {name} WHERE id = 42").collect() == [(0,)]
    explained = api.explain(spark, name, "id = 42")
    assert (explained.files_read, explained.files_total) == (2, 4)
    assert api.sound(spark, name, api.make_predicates(spark, name, 3)) == []
    assert api.collect_stats(spark, name, ["id"]).count() == 4
