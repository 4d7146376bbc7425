"""x"""

from __future__ import annotations

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


class TestUDFsBasic(UDFsBasic):
    pass


class TestDeterministicUDF(DeterministicUDF):
    pass


class TestStableUDF(StableUDF):
    pass


class TestNonDeterministicUDF(NonDeterministicUDF):
    pass


class TestErrorForUnsupportedType(ErrorForUnsupportedType):
    pass


class TestPythonUDFSupported(PythonUDFSupported):
    pass


class TestPythonUDFNotSupported(PythonUDFNotSupported):
    pass


class TestPythonUDFRuntimeVersionRequired(PythonUDFRuntimeVersionRequired):
    pass


class TestPythonUDFEntryPointRequired(PythonUDFEntryPointRequired):
    pass


class TestSqlUDFDefaultArgSupport(SqlUDFDefaultArgSupport):
    pass


class TestPythonUDFDefaultArgSupport(PythonUDFDefaultArgSupport):
    pass


class TestPythonUDFVolatilitySupport(PythonUDFVolatilitySupport):
    pass


class TestCanFindScalarFunctionRelation(CanFindScalarFunctionRelation):
    pass


class TestPythonUDFWithPackagesSupported(PythonUDFWithPackagesSupported):
    pass


class TestBasicPythonUDAF(BasicPythonUDAF):
    pass


class TestBasicSQLUDAF(BasicSQLUDAF):
    pass


class TestPythonUDAFDefaultArgSupport(PythonUDAFDefaultArgSupport):
    pass
