"""A folder as it is at one moment: what no planted file may change."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

Tree = dict[str, tuple[int, int, str]]


def tree(folder: Path, *without: Path) -> Tree:
    """Return size, time and checksum of every file below a folder, and of each link where it leads."""
    found: Tree = {}
    for above, _, files in os.walk(folder):
        for path in (Path(above, name) for name in files):
            if not any(path.is_relative_to(one) for one in without):
                state = path.lstat()
                text = os.readlink(path).encode() if path.is_symlink() else path.read_bytes()
                found[str(path)] = (state.st_size, state.st_mtime_ns, hashlib.sha256(text).hexdigest())
    return found
