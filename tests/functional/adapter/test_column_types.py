"""What a column says of its own type.

dbt-spark's columns know Postgres's names of types alone: of Spark's, these four. `int`, `decimal(10,2)` and `string`
are neither integer, nor numeric, nor string to them.
"""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.adapter.column_types.test_column_types import BaseColumnTypes

MODEL = """
select cast(1 as smallint) as smallint_col, cast(3 as bigint) as bigint_col, cast(4.0 as real) as real_col,
       cast(5.0 as double) as double_col
"""

SCHEMA = """
models:
  - name: model
    data_tests:
      - is_type:
          arguments:
            column_map:
              smallint_col: ['integer', 'number', 'not float']
              bigint_col: ['integer', 'number', 'not string']
              real_col: ['float', 'number', 'not integer']
              double_col: ['float', 'number', 'not numeric']
"""


class TestColumnTypes(BaseColumnTypes):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"model.sql": MODEL, "schema.yml": SCHEMA}

    def test_run_and_test(self, project: Any) -> None:
        self.run_and_test()
