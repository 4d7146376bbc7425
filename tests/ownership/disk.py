"""The disk below a world: rows that readers of a folder see, and files that none of our builds wrote."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pyarrow.parquet as pq

from dbt_zorder.spark.catalog import TableName

Rows = tuple[int, ...]
"""Numbers of the rows of a table, sorted: each row that is ever written has a number of its own."""


class Lost(AssertionError):  # noqa: N818
    """A table lacks rows or has too many, or a file that is not ours was touched."""


class ForeignFiles:
    """Files of users, of Spark and of other catalogs: none may change, and none may come into another's folder."""

    def __init__(self) -> None:
        self._files: dict[Path, tuple[int, int, TableName | None]] = {}
        self._sealed: dict[Path, set[str]] = {}

    def note(self, path: Path, owner: TableName | None = None) -> None:
        """Note size and time of a file, and the managed table that Spark wrote it for."""
        size, time = _size_and_time(path) or (0, 0)
        self._files[path] = (size, time, owner)

    def seal(self, folder: Path) -> None:
        """Note that a folder is another's: no file of it may change, and none may come."""
        for path in [folder, *folder.rglob("*")]:
            if path.is_file():
                self.note(path)
        if folder.is_dir():
            self._sealed[folder] = _names(folder)

    def forget_below(self, folder: Path) -> None:
        """Forget the files in a folder that users themselves delete or move."""
        self._files = {path: is_like for path, is_like in self._files.items() if not path.is_relative_to(folder)}
        self._sealed = {path: names for path, names in self._sealed.items() if not path.is_relative_to(folder)}

    def forget_of(self, table: TableName) -> None:
        """Forget the files that Spark wrote for a managed table, which one of ours has replaced."""
        self._files = {path: is_like for path, is_like in self._files.items() if is_like[2] != table}

    def check(self) -> None:
        """Compare the files with what was noted of them.

        Raises:
            Lost: they differ.
        """
        for path, (size, time, _) in self._files.items():
            if _size_and_time(path) != (size, time):
                msg = f"{path} is not as it was, and none of our builds wrote it"
                raise Lost(msg)
        for folder, names in self._sealed.items():
            if _names(folder) != names:
                msg = f"{folder} is another's, and has other files than before: {_names(folder) ^ names}"
                raise Lost(msg)


class RowReader:
    """Reads the rows of a folder's files, each file once."""

    def __init__(self) -> None:
        self._read: dict[tuple[str, int, int], Rows] = {}

    def rows_at(self, folder: Path) -> Rows:
        """Return the rows of the files that a reader of a folder sees."""
        found: list[int] = []
        for path in _visible(folder):
            status = path.stat()
            key = (str(path), status.st_size, status.st_mtime_ns)
            if key not in self._read:
                self._read[key] = tuple(pq.ParquetFile(path).read(columns=["id"])["id"].to_pylist())
            found += self._read[key]
        return tuple(sorted(found))


def path_of(location: str) -> Path:
    """Return the path of a location in the catalog."""
    return Path(location.removeprefix("file:").rstrip("/"))


def _visible(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    found = []
    for path in sorted(folder.iterdir()):
        if path.name.startswith((".", "_")):
            continue
        if path.is_dir() and "=" in path.name:
            found += _visible(path)
        elif path.suffix == ".parquet" and path.is_file() and path.stat().st_size > 20:
            found.append(path)
    return found


def _names(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()} if folder.exists() else set()


def _size_and_time(path: Path) -> tuple[int, int] | None:
    with contextlib.suppress(OSError):
        status = path.stat()
        return status.st_size, status.st_mtime_ns
    return None
