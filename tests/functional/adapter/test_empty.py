"""``--empty``: everything built, without rows."""

from __future__ import annotations

import importlib.metadata

import pytest
from dbt.tests.adapter.empty import _models
from dbt.tests.adapter.empty.test_empty import (
    BaseTestEmpty,
    BaseTestEmptyInlineSourceRef,
    BaseTestEmptySeedFlag,
    MetadataWithEmptyFlag,
)

DBT_HAS_IT = tuple(int(part) for part in importlib.metadata.version("dbt-core").split(".")[:2]) >= (1, 12)


class TestEmpty(BaseTestEmpty):
    pass


class TestEmptyInlineSourceRef(BaseTestEmptyInlineSourceRef):
    pass


@pytest.mark.skipif(not DBT_HAS_IT, reason="new in dbt-core 1.12")
class TestEmptySeedFlag(BaseTestEmptySeedFlag):
    pass


class TestMetadataWithEmptyFlag(MetadataWithEmptyFlag):
    """But for what Parquet columns cannot do, which is to change their type and to be dropped."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "schema.yml": _models.SCHEMA,
            "control.sql": _models.CONTROL,
            "get_columns_in_relation.sql": _models.GET_COLUMNS_IN_RELATION,
            "alter_relation_comment.sql": _models.ALTER_RELATION_COMMENT,
            "alter_column_comment.sql": _models.ALTER_COLUMN_COMMENT,
        }

    @pytest.mark.parametrize(
        "model", ["control", "get_columns_in_relation", "alter_relation_comment", "alter_column_comment"]
    )
    def test_run(self, project: object, model: str) -> None:
        super().test_run(project, model)
