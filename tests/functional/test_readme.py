"""The quick start of README.md and the guides, with the very models and commands that they show."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
MODELS = dict(re.findall(r"```sql\n-- models/(\w+\.sql)\n(.*?)```", README, re.DOTALL))
(PYTHON_MODEL,) = re.findall(
    r"```python\n# models/customer_scores.py\n(.*?)```",
    (ROOT / "docs" / "reference" / "model-configs.md").read_text(encoding="utf-8"),
    re.DOTALL,
)
GUIDE = (ROOT / "docs" / "guides" / "reading-fewer-files.md").read_text(encoding="utf-8")


def commands(text: str) -> list[list[str]]:
    """Return the arguments of dbt's commands in a text."""
    blocks = "".join(re.findall(r"```shell\n(.*?)```", text, re.DOTALL))
    return [shlex.split(line)[1:] for line in re.findall(r"^dbt .*", blocks, re.MULTILINE)]


class TestReadme:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {**MODELS, "customer_scores.py": PYTHON_MODEL}

    def test_its_models_and_commands_do_what_it_says(self, project: Any, capsys: pytest.CaptureFixture[str]) -> None:
        assert sorted(MODELS) == ["one_customer.sql", "orders.sql"]
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
