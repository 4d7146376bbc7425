"""dbt's SQL macros."""

from __future__ import annotations

import pytest
from dbt.tests.adapter.utils import fixture_datediff, fixture_get_intervals_between, fixture_listagg
from dbt.tests.adapter.utils.test_any_value import BaseAnyValue
from dbt.tests.adapter.utils.test_array_append import BaseArrayAppend
from dbt.tests.adapter.utils.test_array_concat import BaseArrayConcat
from dbt.tests.adapter.utils.test_array_construct import BaseArrayConstruct
from dbt.tests.adapter.utils.test_bool_or import BaseBoolOr
from dbt.tests.adapter.utils.test_cast import BaseCast
from dbt.tests.adapter.utils.test_cast_bool_to_text import BaseCastBoolToText
from dbt.tests.adapter.utils.test_concat import BaseConcat
from dbt.tests.adapter.utils.test_current_timestamp import BaseCurrentTimestampAware, BaseCurrentTimestampNaive
from dbt.tests.adapter.utils.test_date import BaseDate
from dbt.tests.adapter.utils.test_date_spine import BaseDateSpine
from dbt.tests.adapter.utils.test_date_trunc import BaseDateTrunc
from dbt.tests.adapter.utils.test_dateadd import BaseDateAdd
from dbt.tests.adapter.utils.test_datediff import BaseDateDiff
from dbt.tests.adapter.utils.test_equals import BaseEquals
from dbt.tests.adapter.utils.test_escape_single_quotes import (
    BaseEscapeSingleQuotesBackslash,
    BaseEscapeSingleQuotesQuote,
)
from dbt.tests.adapter.utils.test_except import BaseExcept
from dbt.tests.adapter.utils.test_generate_series import BaseGenerateSeries
from dbt.tests.adapter.utils.test_get_intervals_between import BaseGetIntervalsBetween
from dbt.tests.adapter.utils.test_get_powers_of_two import BaseGetPowersOfTwo
from dbt.tests.adapter.utils.test_hash import BaseHash
from dbt.tests.adapter.utils.test_intersect import BaseIntersect
from dbt.tests.adapter.utils.test_last_day import BaseLastDay
from dbt.tests.adapter.utils.test_length import BaseLength
from dbt.tests.adapter.utils.test_listagg import BaseListagg
from dbt.tests.adapter.utils.test_null_compare import BaseMixedNullCompare, BaseNullCompare
from dbt.tests.adapter.utils.test_position import BasePosition
from dbt.tests.adapter.utils.test_replace import BaseReplace
from dbt.tests.adapter.utils.test_right import BaseRight
from dbt.tests.adapter.utils.test_safe_cast import BaseSafeCast
from dbt.tests.adapter.utils.test_source_freshness_custom_info import BaseCalculateFreshnessMethod
from dbt.tests.adapter.utils.test_split_part import BaseSplitPart
from dbt.tests.adapter.utils.test_string_literal import BaseStringLiteral
from dbt.tests.adapter.utils.test_timestamps import BaseCurrentTimestamps
from dbt.tests.adapter.utils.test_validate_sql import BaseValidateSqlMethod

BACKCOMPAT = ("current_timestamp", "current_timestamp_in_utc_backcompat", "current_timestamp_backcompat")
SORTED = "array_join(array_sort(split(%s, '_[|]_|, ')), ',')"


class TestAnyValue(BaseAnyValue):
    pass


class TestArrayAppend(BaseArrayAppend):
    pass


class TestArrayConcat(BaseArrayConcat):
    pass


class TestArrayConstruct(BaseArrayConstruct):
    pass


class TestBoolOr(BaseBoolOr):
    pass


class TestCast(BaseCast):
    pass


class TestCastBoolToText(BaseCastBoolToText):
    pass


class TestConcat(BaseConcat):
    pass


@pytest.mark.skip(reason="an adapter's current_timestamp is either aware of time zones or not, and Spark's is not")
class TestCurrentTimestampAware(BaseCurrentTimestampAware):
    pass


class TestCurrentTimestampNaive(BaseCurrentTimestampNaive):
    pass


class TestDate(BaseDate):
    pass


class TestDateSpine(BaseDateSpine):
    pass


class TestDateTrunc(BaseDateTrunc):
    pass


class TestDateAdd(BaseDateAdd):
    pass


class TestDateDiff(BaseDateDiff):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        """As a table: a view's text of this length is more than the embedded metastore keeps."""
        query = "{{ config(materialized='table') }}" + fixture_datediff.models__test_datediff_sql
        return {"test_datediff.yml": fixture_datediff.models__test_datediff_yml, "test_datediff.sql": query}


class TestEquals(BaseEquals):
    pass


class TestEscapeSingleQuotesQuote(BaseEscapeSingleQuotesQuote):
    pass


class TestEscapeSingleQuotesBackslash(BaseEscapeSingleQuotesBackslash):
    pass


class TestExcept(BaseExcept):
    pass


class TestGenerateSeries(BaseGenerateSeries):
    pass


class TestGetIntervalsBetween(BaseGetIntervalsBetween):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        """With the dates as Spark reads them."""
        query = fixture_get_intervals_between.models__test_get_intervals_between_sql
        return {
            "test_get_intervals_between.yml": (fixture_get_intervals_between.models__test_get_intervals_between_yml),
            "test_get_intervals_between.sql": query.replace("09/01/2023", "2023-09-01").replace(
                "09/12/2023", "2023-09-12"
            ),
        }


class TestGetPowersOfTwo(BaseGetPowersOfTwo):
    pass


class TestHash(BaseHash):
    pass


class TestIntersect(BaseIntersect):
    pass


class TestLastDay(BaseLastDay):
    pass


class TestLength(BaseLength):
    pass


class TestListagg(BaseListagg):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        """dbt-spark's listagg takes no order, so what is compared is in order."""
        query = fixture_listagg.models__test_listagg_sql
        for name, end in (("calculate.actual", ","), ("data_output.expected", "\n")):
            query = query.replace(name + end, f"{SORTED % name} as {name.partition('.')[2]}{end}")
        return {
            "test_listagg.yml": fixture_listagg.models__test_listagg_yml,
            "test_listagg.sql": query + "where calculate.version <> 'bottom_ordered_limited'",
        }


class TestMixedNullCompare(BaseMixedNullCompare):
    pass


class TestNullCompare(BaseNullCompare):
    pass


class TestPosition(BasePosition):
    pass


class TestReplace(BaseReplace):
    pass


class TestRight(BaseRight):
    pass


class TestSafeCast(BaseSafeCast):
    pass


class TestCalculateFreshnessMethod(BaseCalculateFreshnessMethod):
    pass


class TestSplitPart(BaseSplitPart):
    pass


class TestStringLiteral(BaseStringLiteral):
    pass


class TestCurrentTimestamps(BaseCurrentTimestamps):
    @pytest.fixture(scope="class")
    def expected_schema(self) -> dict[str, str]:
        """Spark's timestamps are points in time, and have one name."""
        return dict.fromkeys(BACKCOMPAT, "timestamp")

    @pytest.fixture(scope="class")
    def expected_sql(self) -> str:
        calls = ("current_timestamp()", "current_timestamp::timestamp", "current_timestamp::timestamp")
        return "select " + ", ".join(f"{call} as {name}" for call, name in zip(calls, BACKCOMPAT, strict=True))


class TestValidateSqlMethod(BaseValidateSqlMethod):
    pass
