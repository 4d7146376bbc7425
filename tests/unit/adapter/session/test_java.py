from __future__ import annotations

from pathlib import Path

import pytest

from dbt_zorder.adapter.session.java import (
    JavaError,
    check_java,
    collector,
    find_java,
    parse_java_version,
    required_java,
)


def fake(home: Path, banner: str, status: int = 0) -> None:
    (home / "bin").mkdir(parents=True)
    java = home / "bin" / "java"
    java.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{banner}\nEND\nexit {status}\n")
    java.chmod(0o755)


@pytest.mark.parametrize(
    ("banner", "version"),
    [
        ('java version "1.8.0_402"', 8),
        ('openjdk version "11.0.22" 2024-01-16', 11),
        ('openjdk version "17" 2021-09-14', 17),
        ('openjdk version "21-ea" 2023-09-19', 21),
        ('Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "17.0.10" 2024-01-16', 17),
        ("", None),
        ("no version here", None),
    ],
)
def test_the_release_is_read_from_the_banner(banner: str, version: int | None) -> None:
    assert parse_java_version(banner) == version


@pytest.mark.parametrize(("pyspark", "java"), [("3.5.1", 8), ("4.0.0", 17), ("4.1.4", 17), ("4.2.0.dev1", 17)])
def test_what_spark_needs(pyspark: str, java: int) -> None:
    assert required_java(pyspark) == java


@pytest.mark.parametrize("banner", ['openjdk version "17.0.10"', 'openjdk version "25"', "garbage", ""])
def test_a_fitting_java_and_an_unreadable_one_are_let_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, banner: str
) -> None:
    fake(tmp_path / "jdk with space", banner)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk with space"))
    check_java("4.1.4")
    assert find_java() == tmp_path / "jdk with space" / "bin" / "java"


@pytest.mark.parametrize(("banner", "release"), [('java version "1.8.0_402"', 8), ('openjdk version "11.0.22"', 11)])
def test_an_old_java_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, banner: str, release: int
) -> None:
    fake(tmp_path, banner)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(JavaError) as caught:
        check_java("4.1.4")
    assert str(caught.value) == (
        f"PySpark 4.1.4 needs Java 17 or newer, and {tmp_path}/bin/java is Java {release}: "
        "install a newer one, or set JAVA_HOME to it."
    )


def test_a_java_home_without_java_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(JavaError, match=f"JAVA_HOME points to {tmp_path}/bin/java, which cannot be run"):
        check_java("4.1.4")


def test_no_java_at_all_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(JavaError, match="no java was found: install one, or set JAVA_HOME"):
        check_java("4.1.4")


def test_the_first_java_on_the_path_counts_without_java_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake(tmp_path, 'openjdk version "11"')
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    with pytest.raises(JavaError, match=f"{tmp_path}/bin/java is Java 11"):
        check_java("4.1.4")


def test_the_parallel_collector_is_taken_unless_the_user_has_chosen_one(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS"):
        monkeypatch.delenv(name, raising=False)
    assert collector("") == collector("-Xss8m -XX:+UseStringDeduplication") == "-XX:+UseParallelGC"
    for chosen in ("-XX:+UseG1GC", "-Dx=1 -XX:+UseZGC -Xss8m", "-XX:G1HeapRegionSize=32m"):
        assert collector(chosen) == ""
    monkeypatch.setenv("JDK_JAVA_OPTIONS", "-XX:+UseSerialGC")
    assert collector("") == ""
