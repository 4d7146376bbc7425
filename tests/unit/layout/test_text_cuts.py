from __future__ import annotations

from bisect import bisect_right

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbt_zorder.layout.text_cuts import TextCuts, text_cuts

# few bytes, so that beginnings are alike: also the least and the greatest, with a sign or without
TEXTS = st.binary(max_size=12) | st.lists(st.sampled_from([0, 1, 97, 255]), max_size=20).map(bytes)


@given(
    cuts=st.lists(TEXTS, min_size=1, max_size=40),
    values=st.lists(TEXTS | st.none(), max_size=40),
    shared=st.sampled_from([b"", b"customer-", b"\0" * 9, b"\xff"]),
    skip=st.integers(0, 3),
)
def test_texts_are_found_among_cuts_as_a_search_finds_them(
    cuts: list[bytes], values: list[bytes | None], shared: bytes, skip: int
) -> None:
    """With the bytes that cuts share and without, and where a value is but the beginning of them."""
    ordered = sorted(shared + cut for cut in cuts)
    more = [shared[:3], shared, *ordered, *(cut[:-1] for cut in ordered), *(cut + b"\0" for cut in ordered)]
    all_values = [*values, *more, *(None if value is None else shared + value for value in values)]
    given_values = pa.array(all_values, pa.binary())[skip:]
    found = TextCuts.of(pa.array([b"before", *ordered], pa.binary())[1:]).at_or_below(given_values)
    for value, place in zip(given_values.to_pylist(), found.tolist(), strict=True):
        if value is not None:
            assert place == bisect_right(ordered, value)


def test_few_texts_are_compared_whole() -> None:
    cuts = pa.array([b"%05d" % number for number in range(100)], pa.binary())
    assert isinstance(text_cuts(cuts), TextCuts)
    assert isinstance(text_cuts(cuts[:15]), pa.Array)


@pytest.mark.parametrize("values", [[], [None], [b""], [None, b"", None]])
def test_next_to_no_text_at_all(values: list[bytes | None]) -> None:
    cuts = TextCuts.of(pa.array([b"%05d" % number for number in range(100)], pa.binary()))
    found = cuts.at_or_below(pa.array(values, pa.binary()))
    assert [place for place, value in zip(found.tolist(), values, strict=True) if value is not None] == [
        0
    ] * values.count(b"")
