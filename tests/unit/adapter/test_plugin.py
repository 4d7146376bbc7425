from __future__ import annotations

from pathlib import Path

import pytest

from dbt_zorder.adapter import plugin


def test_macros_are_found_and_stand_on_dbt_sparks() -> None:
    found = Path(plugin.include_path())
    assert (found / "dbt_project.yml").is_file()
    assert (found / "materializations" / "table.sql").is_file()
    assert (plugin.Plugin.project_name, plugin.Plugin.dependencies) == ("dbt_zorder", ["spark"])


def test_the_package_wins_over_what_lies_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "site" / "dbt_zorder"
    for folder in (package / "adapter", package.parent / "macros"):
        folder.mkdir(parents=True)
    (package.parent / "macros" / "dbt_project.yml").write_text("")
    monkeypatch.setattr(plugin, "__file__", str(package / "adapter" / "plugin.py"))
    assert plugin.include_path() == str(package.parent / "macros")
    (package / "macros").mkdir()
    (package / "macros" / "dbt_project.yml").write_text("")
    assert plugin.include_path() == str(package / "macros")


def test_an_incomplete_installation_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugin, "__file__", str(tmp_path / "site" / "dbt_zorder" / "adapter" / "plugin.py"))
    with pytest.raises(FileNotFoundError, match="the installation is incomplete"):
        plugin.include_path()
