"""Paths that are read from files and names: each is parsed where it comes in, and leads nowhere but below a folder.

What lies in a warehouse others may have written. A path from there is a list of plain names, or it is an error.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import unquote

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_SHOWN = 200
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


def data_file(value: Any) -> str:
    """Return the path of a data file from its version's folder.

    Names of partition folders are spelled as Spark writes them: ``p=%2F`` is the value ``/``, and no way up.

    Raises:
        ValueError: it leads elsewhere, or is no file that readers see.
    """
    path = _text(value)
    for part in path.split("/"):
        _check_part(part, path)
        if part[0] == "." or (part[0] == "_" and "=" not in part):
            msg = f"{_shown(path)} is hidden from readers"
            raise ValueError(msg)
    return path


def stats_file(value: Any) -> str:
    """Return the name of a file in a folder of stats.

    Raises:
        ValueError: it is no name, or one that readers pass over.
    """
    name = _text(value)
    if "/" in name:
        msg = f"{_shown(name)} is no name of one file"
        raise ValueError(msg)
    return data_file(name)


def folder_name(value: Any) -> str:
    """Return a text that may be the name of a folder, whatever file system it is on.

    Raises:
        ValueError: it would be more than one name, or another folder.
    """
    name = _text(value)
    if "/" in name:
        msg = f"{_shown(name)} has a slash in it"
        raise ValueError(msg)
    _check_part(name, name)
    return name


def is_folder(location: Any, ending: str) -> bool:
    """Tell whether a text is the absolute path or URI of a folder, without a way up, whose name ends so."""
    if not isinstance(location, str) or not location.endswith(ending):
        return False
    scheme = _SCHEME.match(location)
    path = location[scheme.end() :] if scheme else location
    if not path.startswith("/"):
        return False
    parts = path.lstrip("/").split("/")
    try:
        for part in parts:
            _check_part(part, location)
    except ValueError:
        return False
    # a host or bucket alone is no folder, and an ending alone no name
    return len(parts) > (1 if path.startswith("//") and not path.startswith("///") else 0) and parts[-1] != ending


def check_links(root: str, folders: Iterable[str]) -> None:
    """Find out whether folders below one on this machine's disk are there by links from elsewhere.

    Args:
        root: the folder, which may be reached by links itself.
        folders: paths from there; those that do not exist are fine.

    Raises:
        ValueError: one is.
    """
    real = os.path.realpath(root)
    for folder in folders:
        place = os.path.join(real, folder)
        if os.path.realpath(place) != os.path.normpath(place):
            msg = f"{_shown(folder)} is a link to another folder"
            raise ValueError(msg)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        msg = f"{_shown(value)} is no text"
        raise ValueError(msg)
    if not value:
        msg = "an empty text is no path"
        raise ValueError(msg)
    return value


def _check_part(part: str, whole: str) -> None:
    """Raise ValueError where a part of a path is no plain name."""
    decoded = part
    for _ in range(3):  # what was encoded twice may be decoded twice
        decoded = unquote(decoded)
    if decoded in ("", ".", ".."):
        msg = f"{_shown(whole)} is not a plain path below a folder"
        raise ValueError(msg)
    if "\\" in part or _CONTROL.search(part):
        msg = f"{_shown(whole)} has a backslash or a control character in it"
        raise ValueError(msg)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
