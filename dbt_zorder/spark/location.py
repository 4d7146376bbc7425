"""Compare folders that the catalog and a user may spell differently: ``hdfs://nn:8020/a``, ``/a``."""

from __future__ import annotations

import posixpath
import re
from urllib.parse import unquote

_URI = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*:)?(?://(?P<authority>[^/]*))?(?P<path>.*)", re.DOTALL)


def is_same_place(one: str, other: str) -> bool:
    """Return whether two locations may be one folder: a location without host or bucket matches any."""
    return _may_share(one, other) and not _paths(one).isdisjoint(_paths(other))


def is_within(folder: str, other: str) -> bool:
    """Return whether a folder may be another one, or be inside it."""
    return _may_share(folder, other) and any(
        f"{path.rstrip('/')}/".startswith(f"{above.rstrip('/')}/") for path in _paths(folder) for above in _paths(other)
    )


def path_of(location: str) -> str:
    """Return a location without its file system and host, in its own spelling."""
    return _part(location, "path")


def _may_share(one: str, other: str) -> bool:
    found = {_host(location) for location in (one, other)} - {""}
    return len(found) < 2


def _host(location: str) -> str:
    return _part(location, "authority").partition(":")[0].lower()  # a default port may be left out


def _paths(location: str) -> set[str]:
    """Return a location's path as written, and with encoded characters decoded."""
    path = posixpath.normpath("/" + _part(location, "path").strip("/"))
    return {path, unquote(path)}


def _part(location: str, name: str) -> str:
    match = _URI.fullmatch(location)
    assert match is not None  # any text has a path
    return match[name] or ""
