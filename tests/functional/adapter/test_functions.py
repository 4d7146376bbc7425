"""Functions as nodes of a project: SQL functions, which Spark has from 4.0 on."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from dbt.tests.adapter.functions.test_js_udfs import BasicJSUDF
from dbt.tests.adapter.functions.test_udafs import BasicPythonUDAF, BasicSQLUDAF, PythonUDAFDefaultArgSupport
from dbt.tests.adapter.functions.test_udfs import (
    CanFindScalarFunctionRelation,
    DeterministicUDF,
    ErrorForUnsupportedType,
    NonDeterministicUDF,
    PythonUDFDefaultArgSupport,
    PythonUDFEntryPointRequired,
    PythonUDFNotSupported,
    PythonUDFRuntimeVersionRequired,
    PythonUDFSupported,
    PythonUDFVolatilitySupport,
    PythonUDFWithPackagesSupported,
    SqlUDFDefaultArgSupport,
    StableUDF,
    UDFsBasic,
)
from jinja2 import Environment

from dbt_zorder.adapter.plugin import Plugin

NO_PYTHON = "Spark's own catalog keeps no Python functions"


class TestUDFsBasic(UDFsBasic):
    pass


class TestDeterministicUDF(DeterministicUDF):
    def check_function_volatility(self, sql: str) -> None:
        assert "DETERMINISTIC" in sql
        assert "NOT DETERMINISTIC" not in sql


class TestStableUDF(StableUDF):
    def check_function_volatility(self, sql: str) -> None:
        assert "DETERMINISTIC" in sql
        assert "NOT DETERMINISTIC" not in sql


class TestNonDeterministicUDF(NonDeterministicUDF):
    def check_function_volatility(self, sql: str) -> None:
        assert "NOT DETERMINISTIC" in sql


@pytest.mark.parametrize(
    ("code", "body"),
    [
        ("select 1 -- one", "(select 1 -- one\n)"),
        ("-- one\n/* two */ Select 1;", "(-- one\n/* two */ Select 1\n)"),
        ("with a as (select 1) select * from a", "(with a as (select 1) select * from a\n)"),
        ("selected + 1 -- one", "selected + 1 -- one"),
        ("-- select\n x * 2", "-- select\n x * 2"),
    ],
)
def test_a_query_stands_in_brackets_with_its_comments(code: str, body: str) -> None:
    text = (Path(Plugin.include_path) / "adapters" / "functions.sql").read_text()
    template = Environment(extensions=["jinja2.ext.do"]).from_string(text + "{{ zorder_function_body(code) }}")
    assert template.render(code=code, modules={"re": re}).strip() == body


class TestErrorForUnsupportedType(ErrorForUnsupportedType):
    pass


class TestSqlUDFDefaultArgSupport(SqlUDFDefaultArgSupport):
    expect_default_arg_support = True


class TestPythonUDFNotSupported(PythonUDFNotSupported):
    pass


@pytest.mark.skip(reason="a function is no relation to Spark: SHOW TABLES does not list it")
class TestCanFindScalarFunctionRelation(CanFindScalarFunctionRelation):
    pass


@pytest.mark.skip(reason=NO_PYTHON)
class TestPythonUDFSupported(PythonUDFSupported):
    pass


@pytest.mark.skip(reason=NO_PYTHON)
class TestPythonUDFRuntimeVersionRequired(PythonUDFRuntimeVersionRequired):
    pass


@pytest.mark.skip(reason=NO_PYTHON)
class TestPythonUDFEntryPointRequired(PythonUDFEntryPointRequired):
    pass


@pytest.mark.skip(reason=NO_PYTHON)
class TestPythonUDFDefaultArgSupport(PythonUDFDefaultArgSupport):
    pass


@pytest.mark.skip(reason=NO_PYTHON)
class TestPythonUDFVolatilitySupport(PythonUDFVolatilitySupport):
    pass


@pytest.mark.skip(reason=NO_PYTHON)
class TestPythonUDFWithPackagesSupported(PythonUDFWithPackagesSupported):
    pass


@pytest.mark.skip(reason=NO_PYTHON)
class TestBasicPythonUDAF(BasicPythonUDAF):
    pass


@pytest.mark.skip(reason=NO_PYTHON)
class TestPythonUDAFDefaultArgSupport(PythonUDAFDefaultArgSupport):
    pass


@pytest.mark.skip(reason="a SQL function of Spark's returns one value a row; it has no aggregate ones")
class TestBasicSQLUDAF(BasicSQLUDAF):
    pass


@pytest.mark.skip(reason="Spark runs no JavaScript")
class TestBasicJSUDF(BasicJSUDF):
    pass
