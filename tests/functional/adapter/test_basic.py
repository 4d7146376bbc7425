"""What every adapter must do."""

from __future__ import annotations

import re
from typing import Any

import pytest
from dbt.tests.adapter.basic.expected_catalog import base_expected_catalog, expected_references_catalog, no_stats
from dbt.tests.adapter.basic.test_adapter_methods import BaseAdapterMethod
from dbt.tests.adapter.basic.test_base import BaseSimpleMaterializations
from dbt.tests.adapter.basic.test_docs_generate import BaseDocsGenerate, BaseDocsGenReferences
from dbt.tests.adapter.basic.test_empty import BaseEmpty
from dbt.tests.adapter.basic.test_ephemeral import BaseEphemeral
from dbt.tests.adapter.basic.test_generic_tests import BaseGenericTests
from dbt.tests.adapter.basic.test_get_catalog_for_single_relation import BaseGetCatalogForSingleRelation
from dbt.tests.adapter.basic.test_incremental import (
    BaseIncremental,
    BaseIncrementalBadStrategy,
    BaseIncrementalNotSchemaChange,
)
from dbt.tests.adapter.basic.test_singular_tests import BaseSingularTests
from dbt.tests.adapter.basic.test_singular_tests_ephemeral import BaseSingularTestsEphemeral
from dbt.tests.adapter.basic.test_snapshot_check_cols import BaseSnapshotCheckCols
from dbt.tests.adapter.basic.test_snapshot_timestamp import BaseSnapshotTimestamp
from dbt.tests.adapter.basic.test_table_materialization import BaseTableMaterialization
from dbt.tests.adapter.basic.test_validate_connection import BaseValidateConnection
from dbt.tests.util import run_dbt


class FiguresOf:
    """Equal to a catalog's statistics if they are those of a z-ordered table, or if there are none but Spark's own."""

    def __init__(self, zordered: bool) -> None:
        self.zordered = zordered

    def __eq__(self, stats: object) -> bool:
        names = {"zorder_by", "zorder_files", "zorder_point_query", "zorder_version"}
        assert isinstance(stats, dict)
        return names <= stats.keys() if self.zordered else stats.keys() <= {*no_stats(), "rows", "bytes"}

    __hash__ = None  # type: ignore[assignment]


class SparkCatalog:
    """Types, names of kinds of relations, and figures as this catalog has them."""

    def described(self, build: Any, project: Any, profile_user: str, run: str, **types: str) -> dict[str, Any]:
        found: dict[str, Any] = build(
            project,
            role=profile_user,
            id_type="long",
            text_type="string",
            time_type="timestamp",
            view_type="view",
            table_type="table",
            model_stats=no_stats(),
            seed_stats=FiguresOf(run == "zordered"),
            **types,
        )
        for node in [*found["nodes"].values(), *found["sources"].values()]:
            node["columns"] = {
                name: {**column, "index": place} for place, (name, column) in enumerate(node["columns"].items())
            }  # dbt-spark counts from 0
            if run == "delta" and node["metadata"]["type"] == "table":
                # in other catalogs dbt-spark reads the types as SQL has them
                for column in node["columns"].values():
                    column["type"] = {"long": "bigint"}.get(column["type"], column["type"])
        return found


class TestSimpleMaterializations(BaseSimpleMaterializations):
    pass


class TestEmpty(BaseEmpty):
    pass


class TestEphemeral(BaseEphemeral):
    pass


class TestSingularTests(BaseSingularTests):
    pass


class TestSingularTestsEphemeral(BaseSingularTestsEphemeral):
    pass


class TestGenericTests(BaseGenericTests):
    pass


class TestTableMaterialization(BaseTableMaterialization):
    pass


class TestValidateConnection(BaseValidateConnection):
    pass


class TestAdapterMethod(BaseAdapterMethod):
    pass


class TestIncremental(BaseIncremental):
    pass


class TestIncrementalNotSchemaChange(BaseIncrementalNotSchemaChange):
    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return {"name": "incremental", "models": {"+incremental_strategy": "append"}}  # the suite's own is merge


class TestIncrementalBadStrategy(BaseIncrementalBadStrategy):
    def test_incremental_invalid_strategy(self, project: Any) -> None:
        """dbt-spark names the strategies that there are, and so do we."""
        run_dbt(["seed"])
        results = run_dbt(["run"], expect_pass=False)
        assert re.search("strategy (provided:|is) '?bad_strategy", results.results[0].message)


class TestSnapshotCheckCols(BaseSnapshotCheckCols):
    pass


class TestSnapshotTimestamp(BaseSnapshotTimestamp):
    pass


class TestDocsGenerate(SparkCatalog, BaseDocsGenerate):
    @pytest.fixture(scope="class")
    def expected_catalog(self, project: Any, profile_user: str, suites_run: str) -> dict[str, Any]:
        return self.described(base_expected_catalog, project, profile_user, suites_run)


class TestDocsGenReferences(SparkCatalog, BaseDocsGenReferences):
    @pytest.fixture(scope="class")
    def expected_catalog(self, project: Any, profile_user: str, suites_run: str) -> dict[str, Any]:
        found = self.described(expected_references_catalog, project, profile_user, suites_run, bigint_type="long")
        found["nodes"]["model.test.ephemeral_summary"]["stats"] = FiguresOf(suites_run == "zordered")
        return found


@pytest.mark.skip(reason="dbt-spark has no get_catalog_for_single_relation; dbt itself never calls it")
class TestGetCatalogForSingleRelation(BaseGetCatalogForSingleRelation):
    pass
