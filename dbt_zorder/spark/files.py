"""Read, write, list and delete files on any file system that the session reaches, through its own Hadoop client.

Over Spark Connect this process has no such client: nothing is listed or deleted there.
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

from dbt_zorder.spark.jvm import class_named, has_jvm
from dbt_zorder.spark.local_disk import LocalPath, is_known_here, on_disk
from dbt_zorder.spark.sql import glob_escape

_WHOLE_WHEN_CLOSED = {"s3a", "s3", "gs"}
"""Object stores where a closed file atomically replaces the one of its name, and where a rename copies the file."""

_MOST_TEXT = 1 << 28
"""Maximum bytes of a text to read. The largest texts are plans and saved trees, with about 100 bytes for each file."""


def has_client(spark: SparkSession) -> bool:
    """Return whether this session can list and delete folders."""
    return has_jvm(spark) and getattr(spark, "_jsc", None) is not None


def list_folders(spark: SparkSession, path: str) -> list[str]:
    """Return the names of the folders in ``path``; empty if it does not exist."""
    return _list_names(spark, path, folders=True)


def list_files(spark: SparkSession, path: str) -> list[str]:
    """Return the names of the files in ``path``, without its folders; empty if it does not exist."""
    return _list_names(spark, path, folders=False)


def _list_names(spark: SparkSession, path: str, *, folders: bool) -> list[str]:
    here = _entries_here(spark, path)
    if here is not None:
        return sorted(entry.name for entry in here if (entry.is_folder if folders else entry.is_file))
    system, folder = open_path(spark, path)
    if not system.exists(folder):
        return []
    listed = system.listStatus(folder)
    return sorted(one.getPath().getName() for one in listed if (one.isDirectory() if folders else one.isFile()))


def list_versions(spark: SparkSession, path: str) -> frozenset[tuple[str, int, int]]:
    """Return name, bytes and modification time of each file in ``path``; none if the session cannot list it.

    Times are comparable only with those of the same path.
    """
    try:
        here = _entries_here(spark, path)
        if here is not None:
            files = [(entry.name, os.stat(entry.path)) for entry in here if entry.is_file]
            return frozenset((name, status.st_size, status.st_mtime_ns) for name, status in files)
        system, folder = open_path(spark, path)
        if not system.exists(folder):
            return frozenset()
        return frozenset(
            (str(one.getPath().getName()), int(one.getLen()), int(one.getModificationTime()))
            for one in system.listStatus(folder)
            if one.isFile()
        )
    except Exception:  # no folder, or no JVM over Spark Connect
        return frozenset()


def folders_with(spark: SparkSession, path: str, name: str) -> dict[str, datetime]:
    """Return the folders in ``path`` that contain a file of this name, and the file's modification time."""
    here = _entries_here(spark, path)
    if here is not None:
        return {entry.name: written for entry in here if (written := _written_here(f"{entry.path}/{name}"))}
    system, pattern = open_path(spark, f"{glob_escape(path)}/*/{glob_escape(name)}")
    found = system.globStatus(pattern) or ()
    return {status.getPath().getParent().getName(): _written(status) for status in found}


def delete_path(spark: SparkSession, path: str, last: Sequence[str] = ()) -> None:
    """Delete a file, or a folder with its contents; a missing path is not an error.

    Args:
        spark: session whose Hadoop client deletes.
        path: file or folder.
        last: names of entries to delete after all others, in this order. An interrupted deletion can then be
            distinguished from a lost marker.

    Raises:
        OSError: an entry still exists.
    """
    system, folder = open_path(spark, path)
    if last and system.exists(folder):
        entries = {status.getPath().getName(): status.getPath() for status in system.listStatus(folder)}
        for name in [*(name for name in entries if name not in last), *(name for name in last if name in entries)]:
            _delete(system, entries[name])
    _delete(system, folder)


def _delete(system: Any, path: Any) -> None:
    # some file systems report a failure only by the return value
    if not system.delete(path, True) and system.exists(path):
        msg = f"{path.toString()} could not be deleted."
        raise OSError(msg)


def delete_empty(spark: SparkSession, path: str) -> None:
    """Delete an empty folder.

    Raises:
        Py4JJavaError: it is not empty.
    """
    system, folder = open_path(spark, path)
    if system.exists(folder):
        system.delete(folder, False)


def folder_bytes(spark: SparkSession, path: str) -> int:
    """Return the total bytes of all files below a folder."""
    system, folder = open_path(spark, path)
    return int(system.getContentSummary(folder).getLength())


def written_at(spark: SparkSession, path: str) -> datetime | None:
    """Return a file's modification time, by the clock of its file system; None if there is no such file."""
    system, file = open_path(spark, path)
    if not system.exists(file):
        return None
    return _written(system.getFileStatus(file))


def _written(status: Any) -> datetime:
    return datetime.fromtimestamp(status.getModificationTime() / 1000, timezone.utc)


def _written_here(path: str) -> datetime | None:
    """Return the modification time of a file on this machine's own disk, with the same precision as Hadoop's."""
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
    """Return the entries of a folder on this machine's own disk, where Hadoop needs five calls for each entry.

    Return None if the folder is elsewhere or missing, or if the JVM may encode its names in other bytes.
    """
    place = on_disk(spark, path)
    if place is None or not place.path.isascii():
        return None
    try:
        with os.scandir(place.path) as found:
            # Hadoop hides the checksum files that it writes
            entries = [
                _Entry(one.name, one.path, one.is_dir(), one.is_file())
                for one in found
                if not (one.name.startswith(".") and one.name.endswith(".crc"))
            ]
    except OSError:  # Hadoop's own call reports the error
        return None
    return entries if all(entry.name.isascii() for entry in entries) else None


def exists(spark: SparkSession, path: str) -> bool:
    """Return whether there is a file or folder at ``path``."""
    system, file = open_path(spark, path)
    return bool(system.exists(file))


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
    """Return the same for a folder on this machine's own disk; None where ``_entries_here`` returns None."""
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
    """Rename a file, and create the target's folder if needed; a repeated move does nothing.

    Object stores copy a file and then delete it. If a process ends between the two, the file is in both places, and
    stores refuse to rename it again. The remaining step is then to delete the source, because no other file has its
    name.

    Returns:
        False if there is no file at ``source``: this process or another moved it before.

    Raises:
        OSError: the file is still at ``source``.
        Py4JJavaError: the file is still at ``source``, or in neither place.
    """
    system, file = open_path(spark, source)
    if not system.exists(file):
        return False
    _, place = open_path(spark, target)
    system.mkdirs(place.getParent())
    try:
        renamed = system.rename(file, place)
    except Exception:
        # some file systems raise where others return false: another process may have moved the file meanwhile
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
    """Return whether a file exists in both places with the same size."""
    there = system.exists(file) and system.exists(place)
    return bool(there and system.getFileStatus(file).getLen() == system.getFileStatus(place).getLen())


def write_text(spark: SparkSession, path: str, text: str) -> None:
    """Write a file of UTF-8 text so that readers see the whole text or no file."""
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


def _has_folder(place: LocalPath, system: Any, folder: Any) -> bool:
    """Create the folder of a file, and those above it; return whether this process sees it as well.

    The JVM may have another disk, or encode a name in other bytes, so it is asked. For each folder that the JVM
    creates, it starts a program that sets permissions, which needs about 10 ms.
    """
    path = Path(place.path).parent
    with contextlib.suppress(OSError):  # Hadoop's own call reports the error
        made = place.make_folders(str(path)) if place.path.isascii() else []
        if system.exists(folder):
            return path.is_dir()
        for one in reversed(made):
            os.rmdir(one)
    system.mkdirs(folder)
    return path.is_dir()


def _write_here(place: LocalPath, text: str) -> None:
    """Write the text on this machine's own disk, where Hadoop would start a program to set each file's permissions."""
    file = Path(place.path)
    beside = file.with_name(f".{file.name}.{secrets.token_hex(4)}._writing")
    try:
        beside.write_bytes(text.encode())
        place.set_permissions(beside)
        # the checksum that Hadoop wrote for an older file would contradict the new one
        file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
        beside.replace(file)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def read_text(spark: SparkSession, path: str) -> str:
    """Return the text of a file that ``write_text`` wrote.

    Raises:
        Py4JJavaError: there is no such file.
        ValueError: the file is too large to come from ``write_text``.
    """
    here = on_disk(spark, path)
    if here is not None:
        with contextlib.suppress(OSError):  # the JVM reports the error, or encodes a name in other bytes
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


def open_path(spark: SparkSession, path: str) -> tuple[Any, Any]:
    """Return the file system of a path, and the path as Hadoop's object.

    The session's settings open it, as for Spark's own writers. They may contain the only keys, as after ``SET
    fs.s3a.access.key``. Collecting them needs a millisecond, which a local disk can skip.
    """
    place = class_named(spark._jvm, "org.apache.hadoop.fs.Path")(path)
    if is_known_here(spark, path):
        return place.getFileSystem(spark._jsc.hadoopConfiguration()), place
    return place.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf()), place
