from __future__ import annotations

from typing import Any

import pytest

from dbt_zorder.adapter.config import KEYS, ModelSettings
from dbt_zorder.errors import ConfigError

MODEL = "'m' (models/m.sql)"


def read(**config: Any) -> ModelSettings:
    settings = ModelSettings.from_config(MODEL, {"zorder_by": ["a", "b"], **config})
    assert settings is not None
    return settings


@pytest.mark.parametrize(
    "config", [{}, {"zorder_by": None}, {"zorder_files": 4}, {"zorder_by": "a", "zorder_skip": True}]
)
def test_a_model_without_zorder_by_is_none_of_ours(config: dict[str, Any]) -> None:
    assert ModelSettings.from_config(MODEL, {"materialized": "table", **config}) is None


@pytest.mark.parametrize(("value", "by"), [("a", ("a",)), (["a", "s.x"], ("a", "s.x")), (("b",), ("b",))])
def test_zorder_by_is_a_column_or_a_list(value: Any, by: tuple[str, ...]) -> None:
    assert read(zorder_by=value).by == by


def test_defaults_are_those_of_the_documentation() -> None:
    settings = read()
    assert (settings.files, settings.file_size, settings.weights, settings.bloom) == (None, "auto", None, ())
    assert (settings.keep_versions, settings.grace_hours, settings.stats_columns) == (2, 24.0, ())
    assert (settings.curve, settings.encoding) == ("zorder", "rank")
    assert settings.optimize == "auto"


def test_dbt_sparks_own_configs_are_taken_over() -> None:
    settings = read(
        partition_by="p",
        options={"compression": "zstd", "parquet.block.size": 1024},
        tblproperties={"k": 1},
        location_root="/x",
    )
    assert settings.partition_by == ("p",)
    assert settings.options == {"compression": "zstd", "parquet.block.size": "1024"}
    assert (settings.properties, settings.location_root) == ({"k": "1"}, "/x")


@pytest.mark.parametrize(
    ("key", "value", "attribute", "wanted"),
    [
        ("zorder_files", 16, "files", 16),
        ("zorder_file_size", "64MB", "file_size", "64MB"),
        ("zorder_file_size", 1000, "file_size", 1000),
        ("zorder_weights", [2, 1], "weights", (2.0, 1.0)),
        ("zorder_weights", {"B": 3}, "weights", {"B": 3}),
        ("zorder_bloom", "c", "bloom", ("c",)),
        ("zorder_keep_versions", 0, "keep_versions", 0),
        ("zorder_grace_hours", 0.5, "grace_hours", 0.5),
        ("zorder_optimize", "never", "optimize", "never"),
        ("zorder_in_memory", "never", "in_memory", 0),
        ("zorder_in_memory", 0, "in_memory", 0),
        ("zorder_in_memory", "64MB", "in_memory", 64 << 20),
        (
            "options",
            {"compression": "zstd", "parquet.block.size": 1024},
            "options",
            {"compression": "zstd", "parquet.block.size": "1024"},
        ),
        ("options", {"parquet.page.row.count.limit": 1000}, "page_rows", 1000),
        ("options", {"compression": "zstd"}, "page_rows", None),
        ("zorder_stats_columns", [f"c{n}" for n in range(20)], "stats_columns", tuple(f"c{n}" for n in range(20))),
        ("zorder_stats_columns", [], "stats_columns", ()),
        ("partition_by", [], "partition_by", ()),
        ("zorder_curve", "zorder", "curve", "zorder"),
        ("zorder_curve", "hilbert", "curve", "hilbert"),
        ("zorder_curve", "linear", "curve", "linear"),
        ("zorder_encoding", "rank", "encoding", "rank"),
        ("zorder_encoding", "bits", "encoding", "bits"),
        ("zorder_skip", False, "by", ("a", "b")),
        ("file_format", "parquet", "by", ("a", "b")),
    ],
)
def test_right_values_are_taken(key: str, value: Any, attribute: str, wanted: Any) -> None:
    assert getattr(read(**{key: value}), attribute) == wanted


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("zorder_by", [], "an empty list orders nothing: name 1 to 8 columns"),
        ("zorder_by", "", "it must be a column name or a list of column names"),
        ("zorder_by", " ", "it must be a column name or a list of column names"),
        ("zorder_by", 7, "it must be a column name or a list of column names"),
        ("zorder_by", ["a", 7], "it must be a column name or a list of column names"),
        ("zorder_by", {"a": 1}, "it must be a column name or a list of column names"),
        ("zorder_by", list("abcdefghi"), "at most 8 columns can share a curve, and 9 are given"),
        ("zorder_by", ["a", "a"], "'a' is in it twice"),
        ("zorder_files", 0, "1 or more"),
        ("zorder_files", -3, "1 or more"),
        ("zorder_files", True, "1 or more"),
        ("zorder_files", "16", "1 or more"),
        ("zorder_files", 1.5, "1 or more"),
        ("zorder_file_size", "huge", "'auto', a number of bytes from 1000, or a text like '64MB'"),
        ("zorder_file_size", "-1MB", "'auto', a number of bytes"),
        ("zorder_file_size", 0, "'auto', a number of bytes"),
        ("zorder_file_size", [64], "'auto', a number of bytes"),
        ("zorder_weights", [1], "2 positive numbers"),
        ("zorder_weights", [1, 0], "2 positive numbers"),
        ("zorder_weights", [1, float("nan")], "2 positive numbers"),
        ("zorder_weights", [1, float("inf")], "2 positive numbers"),
        ("zorder_weights", "a", "2 positive numbers"),
        ("zorder_weights", {"bb": 2}, "'bb' is not in zorder_by. Did you mean 'b'?"),
        ("zorder_in_memory", "1GB", "at most 512 MB"),
        ("zorder_bloom", 5, "a column name or a list"),
        ("zorder_bloom", ["x", "x"], "'x' is in it twice"),
        ("zorder_keep_versions", -1, "0 or more"),
        ("zorder_keep_versions", 1.5, "a whole number"),
        ("zorder_grace_hours", -1, "a number of hours"),
        ("zorder_grace_hours", float("nan"), "a number of hours"),
        ("zorder_grace_hours", "1h", "a number of hours"),
        ("zorder_grace_hours", float("inf"), "a number of hours, 0 to 1,000,000"),
        ("zorder_grace_hours", 1e12, "a number of hours, 0 to 1,000,000"),
        *(("zorder_in_memory", value, "'never', a number of bytes") for value in ("auto", -1, True, 5, "much")),
        ("options", "snappy", "a mapping of names to values"),
        ("options", {"parquet.page.row.count.limit": 0}, "'parquet.page.row.count.limit' must be a positive whole"),
        ("options", {"parquet.page.row.count.limit": "1k"}, "must be a positive whole number"),
        ("tblproperties", ["a"], "a mapping of names to values"),
        ("tblproperties", {"location": "/x"}, "and lets no table have such a property: use location_root"),
        (
            "tblproperties",
            {"mine": 1, "owner": "me"},
            "Spark keeps 'owner' to itself, and lets no table have such a property: leave",
        ),
        ("tblproperties", {"spark.sql.x": 1}, "Spark keeps 'spark.sql.x' to itself"),
        ("zorder_stats_columns", {"x": 1}, "a column name or a list"),
        ("zorder_skip", "yes", "it must be true or false"),
        ("zorder_curve", "zordr", "Did you mean 'zorder'?"),
        ("zorder_curve", "hillbert", "only 'zorder', 'hilbert', 'linear' is allowed. Did you mean 'hilbert'?"),
        ("zorder_curve", 3, "only 'zorder', 'hilbert', 'linear' is allowed"),
        ("zorder_encoding", "morton", "only 'rank', 'bits' is allowed"),
        ("zorder_encoding", "ranks", "Did you mean 'rank'?"),
    ],
)
def test_a_wrong_value_is_an_error_that_names_model_key_value_and_what_is_allowed(
    key: str, value: Any, message: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        ModelSettings.from_config(MODEL, {"zorder_by": ["a", "b"], key: value})
    said = str(caught.value)
    assert said.startswith(f"Model {MODEL}: {key} is {value!r}, but ")
    assert message in said


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("zorder_bye", " Did you mean 'zorder_by'?"),
        ("zoder_by", " Did you mean 'zorder_by'?"),
        ("zorder_filesize", " Did you mean 'zorder_file_size'?"),
        ("zorder_keep_version", " Did you mean 'zorder_keep_versions'?"),
        ("zorder_qqqqqqqqqqqqqq", ""),
    ],
)
def test_an_unknown_key_is_an_error_also_without_zorder_by(key: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        ModelSettings.from_config(MODEL, {key: "a"})
    assert str(caught.value) == f"Model {MODEL}: there is no config '{key}'.{hint} There are: {', '.join(KEYS)}."


@pytest.mark.parametrize("key", ["zone", "meta", "order_by", "z", "zebra_stripes"])
def test_keys_of_others_are_none_of_our_business(key: str) -> None:
    assert read(**{key: 1}).by == ("a", "b")


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"partition_by": "a"}, "zorder_by has 'a', which is a partition column"),
        ({"partition_by": ["x", "b"]}, "zorder_by has 'b', which is a partition column"),
        ({"clustered_by": "c"}, "clustered_by is set without buckets; a hash index needs both"),
        ({"buckets": 4}, "buckets is set without clustered_by"),
        (
            {"clustered_by": "c", "buckets": 0},
            "buckets is 0, but it must be 'auto', or a whole number from 2 to 100,000",
        ),
        ({"clustered_by": "c", "buckets": "atuo"}, "from 2 to 100,000. Did you mean 'auto'?"),
        ({"clustered_by": "c", "buckets": 1}, "buckets is 1, but"),
        ({"clustered_by": "c", "buckets": "16"}, "buckets is '16', but"),
        ({"clustered_by": "c", "buckets": True}, "buckets is True, but"),
        ({"clustered_by": "c", "buckets": 100_001}, "buckets is 100001, but"),
        ({"clustered_by": 7, "buckets": 4}, "clustered_by is 7, but it must be a column name"),
        ({"clustered_by": ["c", "c"], "buckets": 4}, "'c' is in it twice"),
        (
            {"clustered_by": "c", "buckets": 4, "file_format": "delta"},
            "clustered_by makes Spark's buckets, which file_format 'delta' does not have",
        ),
        (
            {"materialized": "incremental", "incremental_strategy": "delete+insert", "file_format": "delta"},
            "'delete+insert', which is for file_format 'parquet'; with file_format 'delta' it can be 'append', ",
        ),
        (
            {"materialized": "incremental", "incremental_strategy": "apend", "file_format": "delta"},
            "it can be 'append', 'insert_overwrite', 'microbatch', 'merge'. Did you mean 'append'?",
        ),
        (
            {"zorder_weights": [2, 1], "zorder_curve": "hilbert"},
            "zorder_weights has no effect with zorder_curve 'hilbert'",
        ),
        (
            {"zorder_weights": {"a": 2}, "zorder_curve": "linear"},
            "zorder_weights has no effect with zorder_curve 'linear'",
        ),
        (
            {"zorder_encoding": "bits", "zorder_curve": "linear"},
            "zorder_encoding 'bits' has no effect with zorder_curve 'linear'",
        ),
        (
            {"file_format": "csv"},
            "needs file_format 'parquet', its default, 'delta' or 'iceberg', and file_format is 'csv'",
        ),
        ({"file_format": "orc"}, "or set zorder_skip: true"),
        ({"file_format": "parqet"}, "Did you mean 'parquet'?"),
        ({"options": {"compression": ["zstd"]}}, "'compression' has ['zstd'] where one text or number belongs"),
        ({"zorder_optimize": "native"}, "zorder_optimize is 'native', which is a command of Delta or Iceberg"),
    ],
)
def test_what_does_not_go_together_is_an_error(config: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=f"^Model {MODEL}".replace("(", "\\(").replace(")", "\\)")) as caught:
        read(**config)
    assert message in str(caught.value)


def test_a_root_is_a_text() -> None:
    with pytest.raises(ConfigError, match=r"'m' .*: location_root is 7, but it must be the path or URI of a folder"):
        read(location_root=7)
