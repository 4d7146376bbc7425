"""The errors that users see, and the hint that names what they may have meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class ZorderError(Exception):
    """Something the user asked for cannot be done; the message says what, and what would work instead."""


class ConfigError(ZorderError):
    """A ``zorder_*`` setting has a value, a name or a combination that is not allowed."""


class ColumnError(ZorderError):
    """A column that was named does not exist, is ambiguous, or has a type that cannot be ordered."""


class PredicateError(ZorderError):
    """A predicate is not one boolean SQL expression over the table's columns."""


class UnresolvedError(PredicateError):
    """A predicate names what this session does not have now; the query that it goes into may have it when it runs."""


class BuildError(ZorderError):
    """A build or a batch did not end as it should; the message says what the table is now, mostly what it was."""


class LostRowsError(ZorderError):
    """Rows of another run are no longer in a table, and the message says where they are: this must not be a warning."""


class SchemaChangeError(ZorderError):
    """The columns of a batch are not those of its table, and the model does not allow them to change."""


def did_you_mean(given: str, known: Iterable[str]) -> str:
    """Return ``" Did you mean 'x'?"`` for the known name nearest to ``given``, or an empty string."""
    names = list(known)
    by_lower = {name.lower(): name for name in reversed(names)}
    matches = difflib.get_close_matches(given.lower(), list(by_lower), n=1, cutoff=0.6)
    return f" Did you mean '{by_lower[matches[0]]}'?" if matches else ""
