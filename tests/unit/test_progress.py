from __future__ import annotations

from dbt_zorder.progress import Clock, report_phases_to


def test_phases_of_one_name_add_up_and_a_listener_hears_each() -> None:
    heard: list[str] = []
    clock = Clock()
    with report_phases_to(heard.append):
        for name in ("write", "stats", "write"):
            with clock.phase(name):
                pass
    with clock.phase("swap"):
        pass
    assert heard == ["write", "stats", "write"]
    assert list(clock.seconds) == ["write", "stats", "swap"]
    assert all(seconds >= 0 for seconds in clock.seconds.values())


def test_one_listener_inside_another_leaves_both_to_hear() -> None:
    heard: list[str] = []
    with (
        report_phases_to(lambda phase: heard.append(f"outer {phase}")),
        report_phases_to(lambda phase: heard.append(f"inner {phase}")),
        Clock().phase("write"),
    ):
        pass
    assert heard == ["outer write", "inner write"]
