"""Documents are plain to read, their links lead somewhere, and the files that they name exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from documents.picture import PICTURE, draw, read_figures
from documents.prose import banned_words, numbers, sentences, words_a_sentence
from documents.reference import REFERENCE, TABLES, insert

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("bench/*.md")])
MOST_LINES = {"README.md": 150, "CHANGELOG.md": 60, "docs/performance/summary.md": 120}
MOST_NUMBERS = {"README.md": 25}

each_document = pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))

FILE_NAMES = {path.name for folder in ("dbt_zorder", "tests", "bench") for path in (ROOT / folder).rglob("*.py")}


def read(document: Path) -> str:
    return document.read_text(encoding="utf-8")


def anchors(document: Path) -> set[str]:
    """Return the anchors of a document's headings, as GitHub makes them."""
    found = re.findall(r"^#+ (.+)$", read(document), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in found}


def links(document: Path) -> Iterator[str]:
    text = re.sub(r"```.*?```", "", read(document), flags=re.DOTALL)
    return (link for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link)


@each_document
def test_links_lead_somewhere(document: Path) -> None:
    for link in links(document):
        path, _, anchor = link.partition("#")
        target = (document.parent / path).resolve() if path else document
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


@each_document
def test_files_that_are_named_exist(document: Path) -> None:
    for path in re.findall(r"`([\w./]+\.py|[\w.]+/[\w./]+\.sql)`", read(document)):
        there = (ROOT / path).is_file() or (ROOT / "dbt_zorder" / path).is_file()
        assert there or path in FILE_NAMES, path


@each_document
def test_sentences_are_short_on_average(document: Path) -> None:
    assert words_a_sentence(read(document)) <= 25


@each_document
def test_words_are_plain(document: Path) -> None:
    assert banned_words(read(document)) == []


@pytest.mark.parametrize(("name", "most"), MOST_LINES.items())
def test_pages_for_a_first_look_are_short(name: str, most: int) -> None:
    assert len(read(ROOT / name).splitlines()) <= most


@pytest.mark.parametrize(("name", "most"), MOST_NUMBERS.items())
def test_a_first_look_has_few_numbers(name: str, most: int) -> None:
    assert len(numbers(read(ROOT / name))) <= most


def test_sentences_leave_out_code_tables_and_headings() -> None:
    page = "# Title\n\nOne `a = 1. b` two. [Three](x.md)\nfour?\n\n| a | b. c |\n\n- five\n- six: seven\n"
    page += "\n```sql\nx. y\n```\n"
    assert list(sentences(page)) == ["One code two.", "Three four?", "five", "six: seven"]
    assert words_a_sentence(page) == 2
    assert banned_words("It takes `takes`.\n\n```\nsome\n```\n") == ["It takes code."]
    assert numbers("From 1,000 to 2.5 ([3](4.md)).\n```\n5\n```\n") == ["1,000", "2.5", "3"]


@pytest.mark.parametrize("name", TABLES)
def test_tables_are_those_of_the_code(name: str) -> None:
    page, rows = TABLES[name]
    text = read(REFERENCE / page)
    assert insert(text, name, rows()) == text, "Run python -m documents.reference."


def test_the_picture_is_that_of_the_figures() -> None:
    assert read(PICTURE) == draw(*read_figures()), "Run python -m documents.picture."
