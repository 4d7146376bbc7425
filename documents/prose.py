"""Sentences, words and numbers of a Markdown page, without its code."""

from __future__ import annotations

import re
from collections.abc import Iterator

BANNED = ("told", "held", "known", "some", "of which", "takes", "as of")
"""Words that make sentences vague or stiff; a plain word says the same."""

_BANNED = re.compile(rf"\b({'|'.join(BANNED)})\b", re.IGNORECASE)
_FENCE = re.compile(r"^( *)(```+).*?^\1\2`*[ ]*$", re.DOTALL | re.MULTILINE)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_DIRECTIVE = re.compile(r"^:::.*\n(?:    .*\n|\n(?=    ))*", re.MULTILINE)
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_ITEM = re.compile(r"^\s*(?:[-*+]|\d+\.)\s+", re.MULTILINE)


def without_code(text: str) -> str:
    """Return a page without code, comments and addresses of links."""
    for pattern in (_FENCE, _COMMENT, _DIRECTIVE):
        text = pattern.sub("", text)
    return _LINK.sub(r"\1", text)


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of paragraphs and lists; headings and tables have none. Code in a line is one word."""
    text = re.sub(r"(`+).+?\1", "code", without_code(text).replace("``", "`"), flags=re.DOTALL)
    text = re.sub(r"^\s*[|#].*$", "", text, flags=re.MULTILINE)
    for paragraph in re.split(r"\n\s*\n", _ITEM.sub("\n\n", text).replace("*", "")):
        for sentence in re.split(r"(?<=[.!?])[)\"']*\s+", " ".join(paragraph.split())):
            if words(sentence):
                yield sentence


def words(sentence: str) -> list[str]:
    """Return the words of a sentence; numbers are not counted."""
    return re.findall(r"[A-Za-z][\w'-]*", sentence)


def words_a_sentence(text: str) -> float:
    """Return the mean number of words in a sentence; 0 for a page without sentences."""
    lengths = [len(words(sentence)) for sentence in sentences(text)]
    return sum(lengths) / len(lengths) if lengths else 0.0


def banned_words(text: str) -> list[str]:
    """Return the lines of a page that contain a banned word outside code."""
    lines = re.sub(r"(`+).+?\1", "code", without_code(text)).splitlines()
    return [line for line in lines if _BANNED.search(line)]


def numbers(text: str) -> list[str]:
    """Return the numbers of a page outside code blocks."""
    return re.findall(r"\d+(?:[.,]\d+)*", without_code(text))
