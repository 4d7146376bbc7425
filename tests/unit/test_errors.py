from __future__ import annotations

import pytest

from dbt_zorder.errors import did_you_mean


@pytest.mark.parametrize(
    ("given", "known", "hint"),
    [
        ("custmer_id", ["customer_id", "event_ts"], " Did you mean 'customer_id'?"),
        ("CUSTMER_ID", ["Customer_Id"], " Did you mean 'Customer_Id'?"),
        ("xyz", ["customer_id"], ""),
        ("a", [], ""),
        ("", ["a"], ""),
    ],
)
def test_names_the_nearest_known_name_or_nothing(given: str, known: list[str], hint: str) -> None:
    assert did_you_mean(given, known) == hint
