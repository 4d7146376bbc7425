"""The site lists every page of docs/."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_site_lists_every_page() -> None:
    listed = set(re.findall(r"^ +- ([\w./-]+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE))
    assert {str(path.relative_to(ROOT / "docs")) for path in ROOT.glob("docs/**/*.md")} <= listed
