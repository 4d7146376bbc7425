"""The error for what SQL text cannot say."""

from __future__ import annotations


class UnsupportedError(NotImplementedError):
    """A part of a plan, or a type, that has no form in SQL here."""
