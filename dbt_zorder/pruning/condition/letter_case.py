"""Find how a text may begin if ``lower`` or ``upper`` of it begins with given letters.

``lower(c) = 'bob'`` is TRUE only of texts that begin with one of BOB, BOb, BoB, ... So bounds of ``c`` decide it by
its prefixes, one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dbt_zorder.pruning.condition.like import split_pattern
from dbt_zorder.pruning.predicate.tree import Call, Compare, In, Like, Node, Text

MOST_PREFIXES = 32
"""Maximum number of prefixes that a file's bounds are compared with."""

_FOLDS: dict[str, Callable[[str], str]] = {
    "lower": str.lower,
    "lcase": str.lower,
    "upper": str.upper,
    "ucase": str.upper,
}
_OTHERS: dict[Callable[[str], str], dict[str, str]] = {
    str.lower: {"i": "\u0130\u0131\u00cc\u00cd\u0128", "k": "\u212a"},
    str.upper: {
        "A": "\u1e9a", "F": "\ufb00\ufb01\ufb02\ufb03\ufb04", "H": "\u1e96", "I": "\u0131", "J": "\u01f0",
        "S": "\u00df\u017f\ufb05\ufb06", "T": "\u1e97", "W": "\u1e98", "Y": "\u1e99",
    },
}  # fmt: skip
"""Characters beyond ASCII that become a letter, or a text that begins with it, in any language of the JVM.

The source is Unicode's UnicodeData.txt and SpecialCasing.txt.
"""
_LAST: dict[Callable[[str], str], str] = {str.lower: "i", str.upper: "FIJS"}
"""Letters that end a prefix: one character may become two letters, and the dot above an i or j may vanish."""


def find_prefixes(node: Node) -> tuple[Node, list[str]] | None:
    """Return a text that ``node`` reads without its case, and prefixes: a text that passes has one of them.

    Return None if ``node`` is no such test, or if it decides nothing about the prefix.
    """
    match node:
        case Like(child=child, pattern=Text(value=pattern), ignores_case=True, escape=None):
            return _prefixes(child, str.lower, [_literal_prefix(pattern).lower()])
        case Like(child=Call(name=name, args=(child,)), pattern=Text(value=pattern), escape=escape):
            return _prefixes(child, _FOLDS.get(name.lower()), [_literal_prefix(pattern, escape)])
        case Call(name=name, args=(Call(name=fold, args=(child,)), Text(value=prefix))) if name.lower() == "startswith":
            return _prefixes(child, _FOLDS.get(fold.lower()), [prefix])
        case Compare(op="=" | "<=>", left=Call(name=name, args=(child,)), right=Text(value=value)):
            return _prefixes(child, _FOLDS.get(name.lower()), [value])
        case Compare(op="=" | "<=>", left=Text(value=value), right=Call(name=name, args=(child,))):
            return _prefixes(child, _FOLDS.get(name.lower()), [value])
        case In(child=Call(name=name, args=(child,)), values=values):
            texts = [value.value for value in values if isinstance(value, Text)]
            return _prefixes(child, _FOLDS.get(name.lower()), texts) if len(texts) == len(values) else None
    return None


def _literal_prefix(pattern: str, escape: str | None = None) -> str:
    split = split_pattern(pattern, escape)
    return "" if split is None else split.prefix


def _prefixes(child: Node, fold: Callable[[str], str] | None, texts: Sequence[str]) -> tuple[Node, list[str]] | None:
    if fold is None or not texts:
        return None
    most = MOST_PREFIXES // len(texts)
    found = list(dict.fromkeys(one for text in texts for one in spell(text, fold, most)))
    return None if "" in found else (child, found)


def spell(text: str, fold: Callable[[str], str], most: int) -> list[str]:
    """Return at most ``most`` prefixes: each text whose ``fold`` begins with ``text`` has one of them.

    They end where there would be more, or where nothing is certain about the next letter.
    """
    found = [""]
    for letter in text:
        if not letter.isascii() or fold(letter) != letter:
            break
        letters = dict.fromkeys((letter.upper(), letter.lower(), *_OTHERS[fold].get(letter, "")))
        if len(found) * len(letters) > most:
            break
        found = [one + each for one in found for each in letters]
        if letter in _LAST[fold]:
            break
    return found
