"""Names of partitions' folders, and the values in them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from dbt_zorder.layout import partitions as folders
from dbt_zorder.layout.partitions import NULL_PARTITION, NamelessError, folder_names, null_if_unnamed, values_of

SHORT = st.text(max_size=12).filter(lambda text: text != NULL_PARTITION and text.isprintable())


@given(st.lists(st.tuples(SHORT, st.one_of(st.none(), SHORT)), min_size=1, max_size=3))
def test_values_that_are_kept_apart_come_back(parts: list[tuple[str, str | None]]) -> None:
    columns, values = [name for name, _ in parts], tuple(value for _, value in parts)
    session: Any = None
    (found,) = folder_names(session, columns, [values], whole=True)
    assert found.isascii()
    assert values_of(found) == [*values]


def test_spark_names_folders_and_reads_null(spark: SparkSession) -> None:
    partitions = [("x/y", "a+b"), ("%41", None), ("", "é = :")]
    found = folder_names(spark, ["p q", "r"], partitions)
    assert found[0] == "p q=x%2Fy/r=a+b"
    assert found[1] == f"p q=%2541/r={NULL_PARTITION}"
    assert [values_of(one) for one in found] == [["x/y", "a+b"], ["%41", None], [None, "é = :"]]
    assert values_of("") == []


def test_what_has_no_name(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    for value, message in ((NULL_PARTITION, "a text is"), ("x" * 300, "too long")):
        with pytest.raises(NamelessError, match=message):
            folder_names(spark, ["p"], [(value,)], whole=True)
    assert folder_names(spark, ["p"], [("é",)]) == ["p=é"]
    monkeypatch.setattr(folders, "_is_unicode", lambda _: False)
    with pytest.raises(NamelessError, match="ASCII"):
        folder_names(spark, ["p"], [("é",)])
    assert folder_names(spark, ["p"], [("e",)]) == ["p=e"]


def test_a_text_is_read_back_as_its_folder_says(spark: SparkSession) -> None:
    texts = spark.sql(f"SELECT explode(array('', NULL, 'x', '{NULL_PARTITION}')) AS t")
    assert [row[0] for row in texts.selectExpr(null_if_unnamed("t")).collect()] == [None, None, "x", None]
