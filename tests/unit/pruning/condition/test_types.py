from __future__ import annotations

import pytest
from pyspark.sql.types import (
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    StringType,
)

from dbt_zorder.pruning.condition.types import Rules, comparable_in_list, sorts_alike


@pytest.fixture(autouse=True)
def stats_are() -> None:
    """Statistics play no part here."""


FINE, WIDE = DecimalType(19, 18), DecimalType(31, 1)


@pytest.mark.parametrize("column", [LongType(), DecimalType(18, 4)])
def test_decimals_of_a_list_must_fit_into_one(column: DataType) -> None:
    assert comparable_in_list(column, [FINE], Rules())
    assert comparable_in_list(column, [DecimalType(10, 2), DecimalType(12, 3)], Rules())
    assert not comparable_in_list(column, [FINE, WIDE], Rules())
    assert not comparable_in_list(column, [IntegerType(), FINE, WIDE], Rules())


@pytest.mark.parametrize(
    ("column", "literals", "alike"),
    [
        (DoubleType(), [FINE], True),
        (DoubleType(), [FINE, WIDE], False),
        (DoubleType(), [FINE, IntegerType()], True),
        (DoubleType(), [FloatType()], True),
        (DoubleType(), [FloatType(), IntegerType()], False),
        (DoubleType(), [FloatType(), IntegerType(), DoubleType()], True),
        (FloatType(), [LongType(), IntegerType()], True),
        (LongType(), [LongType(), FINE], True),
        (DateType(), [DateType()], True),
        (DateType(), [StringType()], False),
        (LongType(), [StringType()], False),
    ],
)
def test_an_array_of_values_is_ordered_as_the_column_sees_them(
    column: DataType, literals: list[DataType], alike: bool
) -> None:
    assert sorts_alike(column, literals) == alike
