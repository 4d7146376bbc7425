"""What a column says of its own type."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.adapter.column_types import fixtures
from dbt.tests.adapter.column_types.test_column_types import BaseColumnTypes

MODEL = """
select
    cast(1 as smallint) as smallint_col,
    cast(2 as int) as int_col,
    cast(3 as bigint) as bigint_col,
    cast(4.0 as real) as real_col,
    cast(5.0 as double) as double_col,
    cast(6.0 as decimal(10, 2)) as numeric_col,
    cast('7' as string) as text_col,
    cast('8' as varchar(20)) as varchar_col
"""


class TestColumnTypes(BaseColumnTypes):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        # dbt's Column calls 'int' no integer, and 'decimal(10,2)' no numeric: it knows Postgres's names alone
        schema = fixtures.schema_yml.replace("int_col: ['integer', 'number']", "int_col: ['not float']", 1)
        return {"model.sql": MODEL, "schema.yml": schema}

    def test_run_and_test(self, project: Any) -> None:
        self.run_and_test()
