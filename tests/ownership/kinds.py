"""Which kinds of sequences are mended, in one place: a kind whose value is False is left out of generated sequences.

``tests/ownership/test_known.py`` holds the least sequence of each; what passes there is to be True here.
"""

from __future__ import annotations

import os

MENDED = {
    "root in a managed folder": False,
    "plain table at a root": False,
    "other catalog": False,
    "clones": False,
    "copied version": False,
    "restored entry": False,
    "versions to roll back to": False,
    "strangers of reserved names": False,
    "foreign files in our folders": False,
}
"""Kinds of faults of which generated sequences are to find none any more."""


def is_mended(kind: str) -> bool:
    """Tell whether sequences of a kind are generated; ``OWNERSHIP_ALL=1`` generates all."""
    return MENDED[kind] or bool(os.environ.get("OWNERSHIP_ALL"))
