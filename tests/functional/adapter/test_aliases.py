"""Models by another name."""

from __future__ import annotations

import pytest
from dbt.tests.adapter.aliases import fixtures
from dbt.tests.adapter.aliases.test_aliases import (
    BaseAliasErrors,
    BaseAliases,
    BaseSameAliasDifferentDatabases,
    BaseSameAliasDifferentSchemas,
)

STRING_LITERAL = "{% macro string_literal(s) %} '{{ s }}' {% endmacro %}"  # dbt's own casts it to Postgres's text


class SparkMacros:
    @pytest.fixture(scope="class")
    def macros(self) -> dict[str, str]:
        return {"cast.sql": STRING_LITERAL, "expect_value.sql": fixtures.MACROS__EXPECT_VALUE_SQL}


class TestAliases(SparkMacros, BaseAliases):
    pass


class TestAliasErrors(SparkMacros, BaseAliasErrors):
    pass


class TestSameAliasDifferentSchemas(SparkMacros, BaseSameAliasDifferentSchemas):
    pass


@pytest.mark.skip(reason="a table has a schema, and no database above it")
class TestSameAliasDifferentDatabases(BaseSameAliasDifferentDatabases):
    pass
