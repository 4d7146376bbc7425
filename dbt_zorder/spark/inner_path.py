"""Parse paths that come from files and names, and refuse every path that leads out of its folder.

Others may have written the files in a warehouse. A path from there is a list of plain names, or an error.
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
    """Return the path of a data file, relative to its version's folder.

    Names of partition folders are encoded as Spark writes them: ``p=%2F`` is the value ``/``, not a parent folder.

    Raises:
        ValueError: the path leads elsewhere, or to a file that readers ignore.
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
        ValueError: it is not a plain name, or readers ignore it.
    """
    name = _text(value)
    if "/" in name:
        msg = f"{_shown(name)} is no name of one file"
        raise ValueError(msg)
    return data_file(name)


def folder_name(value: Any) -> str:
    """Return a text that is a valid name of a folder on every file system.

    Raises:
        ValueError: it contains more than one name, or leads to another folder.
    """
    name = _text(value)
    if "/" in name:
        msg = f"{_shown(name)} has a slash in it"
        raise ValueError(msg)
    _check_part(name, name)
    return name


def is_folder(location: Any, ending: str) -> bool:
    """Return whether a text is the absolute path or URI of a folder whose name ends with ``ending``, without ``..``."""
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
    # a host or bucket alone is not a folder, and an ending alone is not a name
    return len(parts) > (1 if path.startswith("//") and not path.startswith("///") else 0) and parts[-1] != ending


def check_links(root: str, folders: Iterable[str]) -> None:
    """Raise if one of the folders on this machine's disk is a link to a folder elsewhere.

    Args:
        root: folder above them, whose own path may contain links.
        folders: paths relative to ``root``; missing ones are ignored.

    Raises:
        ValueError: a folder is such a link.
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
    """Raise ValueError if a part of a path is not a plain name."""
    decoded = part
    for _ in range(3):  # a text that was encoded twice may be decoded twice
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
