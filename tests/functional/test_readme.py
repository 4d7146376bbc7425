"""The quick start of README.md and the guides, with the very models and commands that they show."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt

from documents.quick_start import commands, named_files

ROOT = Path(__file__).parents[2]
README, GUIDE, PYTHON_GUIDE = (
    (ROOT / name).read_text(encoding="utf-8")
    for name in ("README.md", "docs/guides/reading-fewer-files.md", "docs/guides/python-seeds-snapshots.md")
)
MODELS = {
    Path(name).name: body
    for page in (README, PYTHON_GUIDE)
    for name, body in named_files(page).items()
    if name.startswith("models/")
}


def test_the_first_project_is_that_of_readme() -> None:
    first_project = (ROOT / "docs" / "get-started" / "first-project.md").read_text(encoding="utf-8")
    for name, body in named_files(first_project).items():
        lines = named_files(README)[name].splitlines()
        assert body.splitlines()[1:] == lines[1:], name


class TestReadme:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return MODELS

    def test_its_models_and_commands_do_what_it_says(self, project: Any, capsys: pytest.CaptureFixture[str]) -> None:
        assert sorted(MODELS) == ["customer_scores.py", "one_customer.sql", "orders.sql"]
        (run, explain), (_, explain_texts, *_) = commands(README), commands(GUIDE)
        orders, *others = run_dbt(run)
        assert len(others) == 2
        assert orders.adapter_response["files_written"] == 16
        assert max(orders.adapter_response["point_query_files"].values()) < 5
        where = "customer_id = 42 and ordered_at >= date'2024-07-01'"
        schema = project.test_schema
        assert where in MODELS["one_customer.sql"]
        (wanted,) = project.run_sql(f"select count(*) from {schema}.orders where {where}", fetch="one")
        (found,) = project.run_sql(f"select count_if({where}) from {schema}.one_customer", fetch="one")
        assert found == wanted > 0
        (scores,) = project.run_sql(f"select count(score) from {schema}.customer_scores", fetch="one")
        assert scores == project.run_sql(f"select count(distinct customer_id) from {schema}.orders", fetch="one")[0]
        capsys.readouterr()
        run_dbt(explain)
        assert re.search(r"files\W+4\W+16\W+25.0%", capsys.readouterr().out)
        run_dbt(explain_texts)
        assert re.search(r"files\W+[1-6]\W+16", capsys.readouterr().out)
