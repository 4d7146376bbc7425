from __future__ import annotations

from bisect import bisect_right

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dbt_zorder.engine.local.text_search import TextCuts, text_cuts

# few bytes, so that beginnings are alike: also the least and the greatest, with a sign or without
TEXTS = st.binary(max_size=12) | st.lists(st.sampled_from([0, 1, 97, 255]), max_size=20).map(bytes)


@settings(deadline=None)
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


def test_texts_whose_beginnings_are_alike_are_compared_whole() -> None:
    alike = [b"http://www.example.com/%05d" % number for number in range(100)]
    assert isinstance(text_cuts(pa.array(alike, pa.binary())), TextCuts), "behind what all share"
    assert isinstance(text_cuts(pa.array([*alike, b"https://a"], pa.binary())), pa.Array)


def test_of_long_text_no_more_is_looked_at_than_the_longest_cut_has() -> None:
    cuts = TextCuts.of(pa.array([b"%05d" % number for number in range(0, 100, 2)], pa.binary()))
    values = pa.array([b"%05d" % number + b"x" * 5000 for number in range(100)] + [b"", b"00001"], pa.binary())
    short = cuts.shortened(values)
    assert short.nbytes < 2000
    assert cuts.at_or_below(short).tolist() == cuts.at_or_below(values).tolist()
    assert cuts.shortened(short) is short


def test_an_array_of_nothing_at_all() -> None:
    nothing = pa.Array.from_buffers(pa.binary(), 0, [None, pa.py_buffer(b""), pa.py_buffer(b"")])
    assert not len(TextCuts.of(pa.array([b"a", b"b"], pa.binary())).at_or_below(nothing))


@pytest.mark.parametrize("values", [[], [None], [b""], [None, b"", None]])
def test_next_to_no_text_at_all(values: list[bytes | None]) -> None:
    cuts = TextCuts.of(pa.array([b"%05d" % number for number in range(100)], pa.binary()))
    found = cuts.at_or_below(pa.array(values, pa.binary()))
    assert [place for place, value in zip(found.tolist(), values, strict=True) if value is not None] == [
        0
    ] * values.count(b"")
