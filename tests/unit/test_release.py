"""What a release says of itself agrees with the package."""

from __future__ import annotations

from pathlib import Path

import yaml

from dbt_zorder import __version__

ROOT = Path(__file__).parents[2]


def test_the_citation_and_the_changelog_name_the_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == __version__
    assert f"## {__version__} " in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
