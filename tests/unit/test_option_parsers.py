from __future__ import annotations

from typing import Any

import pytest

from dbt_zorder import option_parsers as values


@pytest.mark.parametrize(
    ("read", "given", "found"),
    [
        (values.columns, "a", ("a",)),
        (values.column_names, [], ()),
        (values.file_size, 4096, 4096),
        (values.weights(["a", "b"]), {"B": 3}, {"B": 3}),
        (values.weights(["a", "b"]), [1, 3], (1.0, 3.0)),
        (values.weights_in_order(["a", "b"], sensitive=False), {"`B`": 3}, (1.0, 3.0)),
        (values.weights_in_order(["a", "b"], sensitive=False), [2, 3], (2.0, 3.0)),
        (values.weights_in_order(["id", "iD"], sensitive=True), {"iD": 3, "id": 2}, (2.0, 3.0)),
        (values.weights_in_order(["s.id"], sensitive=False), {"S.`ID`": 3}, (3.0,)),
        (values.column_names, ["a", "A"], ("a", "A")),
        (values.one_of("auto", "never"), "never", "never"),
        (values.properties, {"team": 1}, {"team": "1"}),
    ],
)
def test_a_right_value_is_what_the_build_needs(read: Any, given: object, found: object) -> None:
    assert read(given) == found


@pytest.mark.parametrize(
    ("read", "given", "said"),
    [
        (values.columns, [], "an empty list orders nothing"),
        (values.columns, list("abcdefghi"), "at most 8 columns can share a curve, and 9 are given"),
        (values.column_names, ["a", "a"], "'a' is in it twice"),
        (values.file_size, 128, "a number of bytes from 1000, .* Did you mean '128MB'"),
        (values.weights(["a", "b"]), {"c": 3}, "'c' is not in zorder_by"),
        (values.weights(["a", "b"]), {"a": 0}, "it must be 2 positive numbers"),
        (values.weights_in_order(["id"], sensitive=True), {"ID": 3}, "'ID' is not in zorder_by. Did you mean 'id'"),
        (values.weights_in_order(["id"], sensitive=False), {"ID": 3, "id": 2}, "'id' is in it twice"),
        (values.folder, "/a/b{c}*", r"any of \[ { .* in it as a pattern: leave out { \*$"),
        (values.one_of("auto", "never"), "nevr", "Did you mean 'never'"),
        (values.properties, {"location": "x"}, "use location_root"),
        (values.hours, float("nan"), "a number of hours, 0 to 1,000,000"),
        (values.options, {"parquet.page.row.count.limit": "0"}, "must be a positive whole number"),
        (values.options, {"parquet.writer.version": "V2"}, "one of .v1., .PARQUET_1_0., .*Did you mean .v2."),
    ],
)
def test_a_wrong_value_says_what_is_allowed(read: Any, given: object, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        read(given)
