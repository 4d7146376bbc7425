from __future__ import annotations

import pytest

from dbt_zorder.adapter.session.first_target import FirstTarget

JAVA = "spark.driver.extraJavaOptions"
FIRST = FirstTarget(
    "/here", {"a": "1", "b": "2", JAVA: "-Xss4m"}, {"a": "1", "b": "2", "own": "x", JAVA: "-Dderby -Xss4m"}
)


def said(directory: str, user: dict[str, str], caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return what is said of a target, by a first one that has said nothing yet."""
    caplog.clear()
    first = FirstTarget(FIRST.directory, FIRST.user_settings, FIRST.settings)
    first.warn(directory, user)
    found = [record.getMessage() for record in caplog.records if record.name == "dbt_zorder"]
    first.warn(directory, user)
    assert len([record for record in caplog.records if record.name == "dbt_zorder"]) == len(found), "once"
    return found


def test_the_same_target_is_nothing_to_speak_of(caplog: pytest.LogCaptureFixture) -> None:
    assert said("/here", dict(FIRST.user_settings), caplog) == []
    assert said("/here", {**FIRST.user_settings, "own": "x"}, caplog) == [], "so it is"


def test_another_folder_is(caplog: pytest.LogCaptureFixture) -> None:
    (text,) = said("/new", dict(FIRST.user_settings), caplog)
    assert "with metastore and warehouse in /here: what was to be in /new is there, too" in text


@pytest.mark.parametrize(
    ("user", "others"),
    [
        ({**FIRST.user_settings, "a": "3"}, "a"),
        ({**FIRST.user_settings, "c": "4", "own": "y"}, "c, own"),
        ({"a": "1", JAVA: "-Xss4m"}, "b"),
        ({**FIRST.user_settings, JAVA: "-Xss8m"}, JAVA),
    ],
)
def test_other_settings_are_by_name(user: dict[str, str], others: str, caplog: pytest.LogCaptureFixture) -> None:
    (text,) = said("/here", user, caplog)
    assert f"stay as its first target has them, also {others}, which this target has otherwise" in text
    assert "4" not in text, "their values may be secret"
