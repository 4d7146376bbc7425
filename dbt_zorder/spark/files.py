"""Folders on whatever file system the session reaches, through its own Hadoop client.

Over Spark Connect there is no such client in this process: nothing is listed and nothing deleted there.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple

from pyspark.sql import SparkSession

from dbt_zorder.spark.hadoop import open_path
from dbt_zorder.spark.jvm import class_named, has_jvm
from dbt_zorder.spark.local_disk import Place, on_disk
from dbt_zorder.spark.sql import glob_escape

_WHOLE_WHEN_CLOSED = {"s3a", "s3", "gs"}
"""Object stores in which a file is there once it is closed, in place of what had its name; to rename one copies it."""

_MOST_TEXT = 1 << 28
"""Bytes of a text that is read: the largest are plans of batches and saved trees, of about 100 for each file."""


def has_client(spark: SparkSession) -> bool:
    """Tell whether this session can list and delete folders."""
    return has_jvm(spark) and getattr(spark, "_jsc", None) is not None


def list_folders(spark: SparkSession, path: str) -> list[str]:
    """Return the names of the folders in ``path``; none if it does not exist."""
    here = _entries_here(spark, path)
    if here is not None:
        return sorted(entry.name for entry in here if entry.is_folder)
    system, folder = open_path(spark, path)
    if not system.exists(folder):
        return []
    return sorted(status.getPath().getName() for status in system.listStatus(folder) if status.isDirectory())


def folders_with(spark: SparkSession, path: str, name: str) -> dict[str, datetime]:
    """Return the folders in ``path`` that hold a file of this name, and when it was written."""
    here = _entries_here(spark, path)
    if here is not None:
        return {entry.name: written for entry in here if (written := _written_here(f"{entry.path}/{name}"))}
    system, pattern = open_path(spark, f"{glob_escape(path)}/*/{glob_escape(name)}")
    found = system.globStatus(pattern) or ()
    return {status.getPath().getParent().getName(): _written(status) for status in found}


def delete_path(spark: SparkSession, path: str, last: Sequence[str] = ()) -> None:
    """Delete a file, or a folder and all that is in it; none there is fine.

    Args:
        last: names of entries that go after all others, in this order, so that a deletion cut short can be told from a
            lost marker.

    Raises:
        OSError: something is still there.
    """
    system, folder = open_path(spark, path)
    if last and system.exists(folder):
        entries = {status.getPath().getName(): status.getPath() for status in system.listStatus(folder)}
        for name in [*(name for name in entries if name not in last), *(name for name in last if name in entries)]:
            _delete(system, entries[name])
    _delete(system, folder)


def _delete(system: Any, path: Any) -> None:
    # a file system may say by its answer alone that it could not
    if not system.delete(path, True) and system.exists(path):
        msg = f"{path.toString()} could not be deleted."
        raise OSError(msg)


def delete_empty(spark: SparkSession, path: str) -> None:
    """Delete a folder that holds nothing.

    Raises:
        Py4JJavaError: it holds something.
    """
    system, folder = open_path(spark, path)
    if system.exists(folder):
        system.delete(folder, False)


def folder_bytes(spark: SparkSession, path: str) -> int:
    """Return the bytes of all files below a folder."""
    system, folder = open_path(spark, path)
    return int(system.getContentSummary(folder).getLength())


def is_empty(spark: SparkSession, path: str) -> bool:
    """Tell whether a folder is missing or holds nothing."""
    system, folder = open_path(spark, path)
    return not system.exists(folder) or len(system.listStatus(folder)) == 0


def written_at(spark: SparkSession, path: str) -> datetime | None:
    """Return the time that a file was written, by the clock of its file system; None if there is no such file."""
    system, file = open_path(spark, path)
    if not system.exists(file):
        return None
    return _written(system.getFileStatus(file))


def _written(status: Any) -> datetime:
    return datetime.fromtimestamp(status.getModificationTime() / 1000, timezone.utc)


def _written_here(path: str) -> datetime | None:
    """Return the same of a file on this machine's own disk, of as many digits."""
    try:
        return datetime.fromtimestamp(os.stat(path).st_mtime_ns // 1_000_000 / 1000, timezone.utc)
    except OSError:
        return None


class _Entry(NamedTuple):
    name: str
    path: str
    is_folder: bool
    is_file: bool


def _entries_here(spark: SparkSession, path: str) -> list[_Entry] | None:
    """Return what is in a folder on this machine's own disk, where a call of Hadoop's takes five for each entry.

    None if it is elsewhere, is not there, or has names that the JVM may spell in other bytes.
    """
    place = on_disk(spark, path)
    if place is None or not place.path.isascii():
        return None
    try:
        with os.scandir(place.path) as found:
            # Hadoop hides the checksums that it keeps beside files
            entries = [
                _Entry(one.name, one.path, one.is_dir(), one.is_file())
                for one in found
                if not (one.name.startswith(".") and one.name.endswith(".crc"))
            ]
    except OSError:  # Hadoop says why
        return None
    return entries if all(entry.name.isascii() for entry in entries) else None


def exists(spark: SparkSession, path: str) -> bool:
    """Tell whether there is a file or folder at ``path``."""
    system, file = open_path(spark, path)
    return bool(system.exists(file))


def list_files(spark: SparkSession, path: str) -> list[str]:
    """Return the names of the files in ``path``, not of its folders; none if it does not exist."""
    here = _entries_here(spark, path)
    if here is not None:
        return sorted(entry.name for entry in here if entry.is_file)
    system, folder = open_path(spark, path)
    if not system.exists(folder):
        return []
    return sorted(status.getPath().getName() for status in system.listStatus(folder) if status.isFile())


def files_below(spark: SparkSession, path: str) -> list[str]:
    """Return the paths, from ``path``, of all files below it, also of hidden ones and links; none if it is gone."""
    here = _walked_here(spark, path)
    if here is not None:
        return here
    system, folder = open_path(spark, path)
    if not system.exists(folder):
        return []
    above = str(system.makeQualified(folder).toUri().getPath()).rstrip("/")
    found, names = system.listFiles(folder, True), []
    while found.hasNext():
        names.append(str(found.next().getPath().toUri().getPath())[len(above) + 1 :])
    return names


def _walked_here(spark: SparkSession, path: str) -> list[str] | None:
    """Return the same of a folder on this machine's own disk; None as of ``_entries_here``."""
    place = on_disk(spark, path)
    if place is None or not place.path.isascii() or not os.path.isdir(place.path):
        return None
    names = []
    try:
        for folder, inner, files in os.walk(place.path, onerror=_raise):
            links = [name for name in inner if os.path.islink(f"{folder}/{name}")]
            names += [os.path.relpath(f"{folder}/{name}", place.path) for name in (*files, *links)]
    except OSError:  # Hadoop says why
        return None
    return names if all(name.isascii() for name in names) else None


def _raise(error: OSError) -> None:
    raise error


def move(spark: SparkSession, source: str, target: str) -> bool:
    """Rename a file, also into a folder that does not exist yet; moving it a second time does nothing.

    Object stores copy a file and then delete it. A process that ends between the two leaves it in both places, where
    they refuse to rename it again: then what is left is to delete it. Nothing else has its name.

    Returns:
        False if there is no file at ``source``: it was moved before, by this process or another.

    Raises:
        OSError: the file is still where it was.
        Py4JJavaError: the same, or the file is neither here nor there.
    """
    system, file = open_path(spark, source)
    if not system.exists(file):
        return False
    _, place = open_path(spark, target)
    system.mkdirs(place.getParent())
    try:
        renamed = system.rename(file, place)
    except Exception:
        # some file systems raise where others return false: another process may have moved it since we looked
        if not system.exists(file) and system.exists(place):
            return False
        if not _are_both(system, file, place):
            raise
        renamed = False
    if renamed or not system.exists(file):
        return True
    if not _are_both(system, file, place):
        msg = f"The file {source} could not be renamed to {target}."
        raise OSError(msg)
    _delete(system, file)
    return True


def _are_both(system: Any, file: Any, place: Any) -> bool:
    """Tell whether a file is in two places."""
    there = system.exists(file) and system.exists(place)
    return bool(there and system.getFileStatus(file).getLen() == system.getFileStatus(place).getLen())


def write_text(spark: SparkSession, path: str, text: str) -> None:
    """Write a file of UTF-8 text that is either there as a whole or not there."""
    beside = f"{path}._writing"
    system, file = open_path(spark, beside)
    here = on_disk(spark, path)
    if here is not None and _has_folder(here, system, file.getParent()):
        _write_here(here, text)
        return
    if str(system.getUri().getScheme()).lower() in _WHOLE_WHEN_CLOSED:
        _write(system, open_path(spark, path)[1], text)
        return
    _write(system, file, text)
    delete_path(spark, path)
    move(spark, beside, path)


def _write(system: Any, file: Any, text: str) -> None:
    stream = system.create(file, True)
    try:
        stream.write(bytearray(text.encode()))
    finally:
        stream.close()


def _has_folder(place: Place, system: Any, folder: Any) -> bool:
    """Make the folder of a file, and those above it; tell whether this process has it, too.

    The JVM may have another disk, or spell a name in other bytes, so it is asked. It starts a program for the rights of
    each folder that it makes: some 10 ms.
    """
    path = Path(place.path).parent
    with contextlib.suppress(OSError):  # Hadoop says why
        made = place.make_folders(str(path)) if place.path.isascii() else []
        if system.exists(folder):
            return path.is_dir()
        for one in reversed(made):
            os.rmdir(one)
    system.mkdirs(folder)
    return path.is_dir()


def _write_here(place: Place, text: str) -> None:
    """Do the same on this machine's own disk, where Hadoop starts a program for the rights of each file it makes."""
    file = Path(place.path)
    beside = file.with_name(f".{file.name}.{secrets.token_hex(4)}._writing")
    try:
        beside.write_bytes(text.encode())
        place.give_rights(beside)
        # the checksum that Hadoop wrote beside an older file would contradict the new one
        file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
        beside.replace(file)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def read_text(spark: SparkSession, path: str) -> str:
    """Return the text of a file that ``write_text`` wrote.

    Raises:
        Py4JJavaError: there is none.
        ValueError: it is none that ``write_text`` wrote.
    """
    here = on_disk(spark, path)
    if here is not None:
        with contextlib.suppress(OSError):  # the JVM says what is wrong, or it spells a name in other bytes
            _check_size(path, Path(here.path).stat().st_size)
            return Path(here.path).read_bytes().decode()
    system, file = open_path(spark, path)
    _check_size(path, system.getFileStatus(file).getLen())
    stream = system.open(file)
    try:
        return bytes(class_named(spark._jvm, "org.apache.commons.io.IOUtils").toByteArray(stream)).decode()
    finally:
        stream.close()


def _check_size(path: str, size: int) -> None:
    if size > _MOST_TEXT:
        msg = f"The file {path} has {size:,} bytes, which is no text of ours."
        raise ValueError(msg)
