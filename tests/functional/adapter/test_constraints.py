"""Contracts and constraints; Parquet enforces no constraint."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.adapter.constraints.test_constraints import (
    BaseConstraintQuotedColumn,
    BaseConstraintsRollback,
    BaseConstraintsRuntimeDdlEnforcement,
    BaseIncrementalConstraintsColumnsEqual,
    BaseIncrementalConstraintsRollback,
    BaseIncrementalConstraintsRuntimeDdlEnforcement,
    BaseIncrementalContractSqlHeader,
    BaseIncrementalForeignKeyConstraint,
    BaseModelConstraintsRuntimeEnforcement,
    BaseTableConstraintsColumnsEqual,
    BaseTableContractSqlHeader,
    BaseViewConstraintsColumnsEqual,
)

NOT_ENFORCED = "a Parquet table has no constraints that a write could break; dbt-spark writes them for Delta alone"


TYPES = {
    "1": "int",
    "'1'": "string",
    "true": "boolean",
    "timestamp'2013-11-03 00:00:00-07'": "timestamp",
    "date'2013-11-03'": "date",
    "array('a', 'b')": "array<string>",
    "array(1, 2)": "array<int>",
    "cast(1 as decimal(10, 2))": "decimal(10,2)",
    "named_struct('bar', 1.5d)": "struct<bar:double>",
}


class SparkTypes:
    @pytest.fixture
    def string_type(self) -> str:
        return "string"

    @pytest.fixture
    def int_type(self) -> str:
        return "int"

    @pytest.fixture
    def data_types(self) -> list[list[str]]:
        """Of each value the type in the contract, and the same in the error."""
        return [[value, name, name] for value, name in TYPES.items()]


class TestTableConstraintsColumnsEqual(SparkTypes, BaseTableConstraintsColumnsEqual):
    pass


class TestViewConstraintsColumnsEqual(SparkTypes, BaseViewConstraintsColumnsEqual):
    pass


class TestIncrementalConstraintsColumnsEqual(SparkTypes, BaseIncrementalConstraintsColumnsEqual):
    pass


@pytest.mark.skip(reason="a session runs one statement at a time, and a sql_header is a statement of its own")
class TestTableContractSqlHeader(BaseTableContractSqlHeader):
    pass


@pytest.mark.skip(reason="a session runs one statement at a time, and a sql_header is a statement of its own")
class TestIncrementalContractSqlHeader(BaseIncrementalContractSqlHeader):
    pass


class TestIncrementalForeignKeyConstraint(BaseIncrementalForeignKeyConstraint):
    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return {"models": {"+incremental_strategy": "append"}}

    @pytest.fixture(scope="class")
    def macros(self) -> dict[str, str]:
        """Without the suite's macro, which creates a table of constraints in Postgres's way."""
        return {}


@pytest.mark.skip(reason=NOT_ENFORCED)
class TestConstraintsRuntimeDdlEnforcement(BaseConstraintsRuntimeDdlEnforcement):
    pass


@pytest.mark.skip(reason=NOT_ENFORCED)
class TestConstraintsRollback(BaseConstraintsRollback):
    pass


@pytest.mark.skip(reason=NOT_ENFORCED)
class TestIncrementalConstraintsRuntimeDdlEnforcement(BaseIncrementalConstraintsRuntimeDdlEnforcement):
    pass


@pytest.mark.skip(reason=NOT_ENFORCED)
class TestIncrementalConstraintsRollback(BaseIncrementalConstraintsRollback):
    pass


@pytest.mark.skip(reason=NOT_ENFORCED)
class TestModelConstraintsRuntimeEnforcement(BaseModelConstraintsRuntimeEnforcement):
    pass


@pytest.mark.skip(reason=NOT_ENFORCED)
class TestConstraintQuotedColumn(BaseConstraintQuotedColumn):
    pass
