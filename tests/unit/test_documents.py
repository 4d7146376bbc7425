"""Links in the documents lead somewhere, and the files that they name exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("bench/*.md")])

FILE_NAMES = {path.name for folder in ("dbt_zorder", "tests", "bench") for path in (ROOT / folder).rglob("*.py")}


def anchors(document: Path) -> set[str]:
    """Return the anchors of a document's headings, as GitHub makes them."""
    found = re.findall(r"^#+ (.+)$", document.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in found}


def links(document: Path) -> Iterator[str]:
    text = re.sub(r"```.*?```", "", document.read_text(encoding="utf-8"), flags=re.DOTALL)
    return (link for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(document: Path) -> None:
    for link in links(document):
        path, _, anchor = link.partition("#")
        target = (document.parent / path).resolve() if path else document
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_that_are_named_exist(document: Path) -> None:
    for path in re.findall(r"`([\w./]+\.py|[\w.]+/[\w./]+\.sql)`", document.read_text(encoding="utf-8")):
        there = (ROOT / path).is_file() or (ROOT / "dbt_zorder" / path).is_file()
        assert there or path in FILE_NAMES, path
