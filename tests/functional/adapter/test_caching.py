"""What dbt remembers of a schema."""

from __future__ import annotations

from typing import Any

from dbt.tests.adapter.caching.test_caching import (
    BaseCachingLowercaseModel,
    BaseCachingSelectedSchemaOnly,
    BaseCachingUppercaseModel,
    BaseNoPopulateCache,
)
from dbt.tests.util import run_dbt


class WithoutDatabase:
    """As the suite's own, which compares the names of databases too; there are none here."""

    def run_and_inspect_cache(self, project: Any, run_args: list[str] | None = None) -> None:
        names = set()
        for _ in range(2):
            run_dbt(run_args)
            assert len(project.adapter.cache.relations) == 1
            relation = next(iter(project.adapter.cache.relations))
            assert relation.schema == project.test_schema
            names.add((relation.database, relation.identifier.lower()))
        assert names == {(None, "model")}


class TestCachingLowercaseModel(WithoutDatabase, BaseCachingLowercaseModel):
    pass


class TestCachingUppercaseModel(WithoutDatabase, BaseCachingUppercaseModel):
    pass


class TestCachingSelectedSchemaOnly(WithoutDatabase, BaseCachingSelectedSchemaOnly):
    pass


class TestNoPopulateCache(WithoutDatabase, BaseNoPopulateCache):
    pass
