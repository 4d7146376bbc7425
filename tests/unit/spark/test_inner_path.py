from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbt_zorder.errors import ZorderError
from dbt_zorder.spark.catalog import TableName
from dbt_zorder.spark.inner_path import check_links, data_file, folder_name, is_folder, stats_file

NO_TEXT: list[Any] = [None, 1, True, 1.5, [], ["a"], {"a": 1}, b"a"]
NO_NAME = ["", ".", "..", "%2e%2e", "%2E.", "%252e%252e", "a\\b", "..\\evil", "a\x00b", "a\nb", "\x7f"]
NO_PATH = ["/", "/etc/passwd", "../x", "p=1/../../x", "p=1/./x", "p=1//x", "p=1/", "file:/x/..", "p=1/%2e%2e/x", "//x"]
HIDDEN = ["_zorder_version/part-0", ".hidden", "p=1/_SUCCESS", "_zorder_stats/x.stats", ".._/x"]


@pytest.mark.parametrize("path", ["part-0.parquet", "p=1/a.parquet", "p=%2F..%2Fx/b=ü %7B/a", "_p=1/a", "a:b/c d"])
def test_paths_of_data_files_are_kept_as_they_are(path: str) -> None:
    assert data_file(path) == path


@pytest.mark.parametrize("path", [*NO_TEXT, *NO_NAME, *NO_PATH, *HIDDEN])
def test_what_leads_elsewhere_is_no_path_of_a_data_file(path: Any) -> None:
    with pytest.raises(ValueError, match=r"no text|no path|plain path|backslash|hidden"):
        data_file(path)


@pytest.mark.parametrize("name", [*NO_TEXT, *NO_NAME, *NO_PATH, *HIDDEN, "p=1/a.stats"])
def test_stats_are_one_name(name: Any) -> None:
    assert stats_file("part-0.stats") == "part-0.stats"
    with pytest.raises(ValueError, match=r"."):
        stats_file(name)


@given(st.lists(st.sampled_from(["..", ".", "a", "p=1", "", "%2e", "/", "\\", "\x00", "%2F", "file:"]), max_size=6))
def test_no_path_that_passes_leads_out_of_its_folder(parts: list[str]) -> None:
    path = "/".join(parts)
    try:
        data_file(path)
    except ValueError:
        return
    assert Path("/root/table", path).resolve().is_relative_to("/root/table")


@pytest.mark.parametrize("name", [*NO_NAME, "a/b", "../evil", "/", "/etc"])
def test_no_table_has_the_name_of_a_path(name: str) -> None:
    with pytest.raises(ZorderError, match=r"A table cannot have the name .* look at the model's file and its alias"):
        TableName("db", name)
    with pytest.raises(ValueError, match=r"."):
        folder_name(name)


@pytest.mark.parametrize("name", ["t", "T_1", "größe", "a b", "my-table", "_t"])
def test_other_names_are_for_the_catalog_to_judge(name: str) -> None:
    assert TableName("db", name).identifier == folder_name(name) == name


@pytest.mark.parametrize(
    "folder",
    ["/w/t__zorder", "file:/w/t__zorder", "file:///w/a%20b/t__zorder", "s3a://b/t__zorder", "hdfs://nn:1/t__zorder"],
)
def test_a_root_is_an_absolute_folder_that_is_named_like_one(folder: str) -> None:
    assert is_folder(folder, "__zorder")


@pytest.mark.parametrize(
    "folder",
    [
        "", "/", "//", "file:/", "s3a://b", "s3a://t__zorder", "/w", "w/t__zorder", "t__zorder", "/w/__zorder",
        "/__zorder", "/w/../t__zorder", "/w/%2e%2e/t__zorder", "/w/t__zorder/x", "/w/t__zorder/", "/w/a\\b/t__zorder",
        "/w/\x00/t__zorder", None, 1, [],
    ],
)  # fmt: skip
def test_others_are_none(folder: Any) -> None:
    assert not is_folder(folder, "__zorder")


def test_folders_that_are_links_are_found(tmp_path: Path) -> None:
    (tmp_path / "t" / "p=1").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "t" / "p=2").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "to t").symlink_to(tmp_path / "t")
    for root in ("t", "to t"):
        check_links(str(tmp_path / root), ["", "p=1", "p=1/q=2", "p=3/q=1"])
        for folder in ("p=2", "p=2/q=1"):
            with pytest.raises(ValueError, match="is a link to another folder"):
                check_links(str(tmp_path / root), ["p=1", folder])
