"""Models that are no tables, but stand in the queries of others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dbt.tests.adapter.ephemeral.test_ephemeral import (
    BaseEphemeralErrorHandling,
    BaseEphemeralMulti,
    BaseEphemeralNested,
)
from dbt.tests.util import check_relations_equal, run_dbt


def compiled(name: str) -> str:
    """Return what was run for a model, without white space."""
    return "".join(Path("target", "run", "test", "models", f"{name}.sql").read_text().split())


class TestEphemeralMulti(BaseEphemeralMulti):
    def test_ephemeral_multi(self, project: Any) -> None:
        """As the suite's own, up to the words by which Postgres makes a view."""
        run_dbt(["seed"])
        assert len(run_dbt(["run"])) == 3
        for name in ("dependent", "double_dependent", "super_dependent"):
            check_relations_equal(project.adapter, ["seed", name])
        found = compiled("double_dependent")
        base = f"with __dbt__cte__base as (select * from {project.test_schema}.seed)"
        copy = ", __dbt__cte__base_copy as (select * from __dbt__cte__base)"
        assert (base + copy).replace(" ", "") in found
        assert found.count("__dbt__cte__baseas(") == 1
        assert found.endswith("select*from__dbt__cte__base_copywheregender='Female'")


class TestEphemeralNested(BaseEphemeralNested):
    def test_ephemeral_nested(self, project: Any) -> None:
        """As the suite's own, up to the words by which Postgres makes a view."""
        assert len(run_dbt(["run"])) == 2
        query = (
            f"with __dbt__cte__ephemeral_level_two as (select * from {project.test_schema}.source_table), "
            "__dbt__cte__ephemeral as (select * from __dbt__cte__ephemeral_level_two) "
            "select * from __dbt__cte__ephemeral"
        )
        assert compiled("root_view").endswith(query.replace(" ", ""))


class TestEphemeralErrorHandling(BaseEphemeralErrorHandling):
    pass
