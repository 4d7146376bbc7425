"""Which kinds of sequences are mended, in one place: a kind whose value is False is left out of generated sequences.

``tests/ownership/test_least_sequences.py`` has the least sequence of each. A kind whose sequence passes there is True.
"""

from __future__ import annotations

import os

MENDED = {
    "root in a managed folder": True,
    "plain table at a root": True,
    "other catalog": True,
    "clones": True,
    "clones left behind": True,
    "copied version": True,
    "restored entry": True,
    "batches where the version is gone": True,
    "versions to roll back to": True,
    "strangers of reserved names": True,
    "foreign files in our folders": True,
}
"""Kinds of faults that generated sequences must not find any more."""


def is_mended(kind: str) -> bool:
    """Return whether sequences of a kind are generated; ``OWNERSHIP_ALL=1`` generates all."""
    return MENDED[kind] or bool(os.environ.get("OWNERSHIP_ALL"))
