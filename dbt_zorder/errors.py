"""User-facing errors, and the hint that suggests the nearest valid name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class ZorderError(Exception):
    """Base class of this package's errors. The message says what cannot be done, and what would work instead."""


class ConfigError(ZorderError):
    """A ``zorder_*`` setting has a value, a name or a combination that is not allowed."""


class ColumnError(ZorderError):
    """A named column does not exist, is ambiguous, or has a type that Spark cannot order."""


class PredicateError(ZorderError):
    """A predicate is not one boolean SQL expression over the table's columns."""


class UnresolvedError(PredicateError):
    """A predicate uses a name that this session cannot resolve now. The query around it may resolve it when it runs."""


class BuildError(ZorderError):
    """A build or a batch failed. The message gives the table's state, which is mostly unchanged."""


class MissingVersionError(BuildError):
    """The version that a table leads to is missing or half deleted; the message names what repairs the table."""


class LostRowsError(ZorderError):
    """Rows of another run have been lost from a table. The message says where they are. Never log it as a warning."""


class SchemaChangeError(ZorderError):
    """The columns of a batch differ from its table's, and the model does not allow the change."""


def did_you_mean(given: str, valid: Iterable[str]) -> str:
    """Return ``" Did you mean 'x'?"`` for the valid name nearest to ``given``, or an empty string."""
    names = list(valid)
    by_lower = {name.lower(): name for name in reversed(names)}
    matches = difflib.get_close_matches(given.lower(), list(by_lower), n=1, cutoff=0.6)
    return f" Did you mean '{by_lower[matches[0]]}'?" if matches else ""
