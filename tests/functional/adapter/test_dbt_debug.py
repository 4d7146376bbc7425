"""x"""

from __future__ import annotations

from dbt.tests.adapter.dbt_debug.test_dbt_debug import (
    BaseDebugInvalidProjectPostgres,
    BaseDebugPostgres,
    BaseDebugProfileVariable,
)


class TestDebugProfileVariable(BaseDebugProfileVariable):
    pass


class TestDebugPostgres(BaseDebugPostgres):
    pass


class TestDebugInvalidProjectPostgres(BaseDebugInvalidProjectPostgres):
    pass
