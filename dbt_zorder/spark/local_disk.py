"""Detect paths on this machine's own disk, where this process replaces JVM calls by its own of microseconds."""

from __future__ import annotations

import contextlib
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession

from dbt_zorder.spark.jvm import class_named

_OWN = {"org.apache.hadoop.fs.LocalFileSystem", "org.apache.hadoop.hive.ql.io.ProxyLocalFileSystem"}
"""Hadoop's local file system, and Hive's, which delegates to it."""

_PLAIN = re.compile(r"(?:file:(?://)?)?(?P<path>(?:/(?!\.\.?(?:/|$))[\w.=-]+)+)/?", re.ASCII)
"""Path with only one spelling: no part of it is encoded, empty, ``.`` or ``..``."""

_umasks: WeakKeyDictionary[SparkSession, dict[str, int | None]] = WeakKeyDictionary()


@dataclass(frozen=True)
class LocalPath:
    """A path on this machine's disk.

    Attributes:
        path: absolute path.
        uri: the same path as Spark lists it, with special characters encoded.
        umask: permission bits that Spark withholds from new files and folders there. It is Hadoop's own setting,
            ``fs.permissions.umask-mode``: Hadoop sets the permissions of everything it creates, whatever the process's
            umask.
    """

    path: str
    uri: str
    umask: int

    @property
    def mode(self) -> int:
        """Return the permissions of a file that Spark would create there."""
        return 0o666 & ~self.umask

    @property
    def folder_mode(self) -> int:
        """Return the permissions of a folder that Spark would create there."""
        return 0o777 & ~self.umask

    def make_folder(self, folder: str) -> None:
        """Create a folder with the permissions that Spark would give it.

        Raises:
            OSError: it exists already, or its parent does not.
        """
        os.mkdir(folder)
        # a new folder inherits setgid from its parent, and Hadoop's chmod of four digits keeps it
        os.chmod(folder, self.folder_mode | os.stat(folder).st_mode & stat.S_ISGID)

    def make_folders(self, folder: str) -> list[str]:
        """Create a folder and its missing parents; return the created ones, the outermost first.

        Raises:
            OSError: one of them cannot be created.
        """
        made = []
        for one in reversed([Path(folder), *Path(folder).parents]):
            with contextlib.suppress(FileExistsError):  # another thread may have been faster
                if not one.is_dir():
                    self.make_folder(str(one))
                    made.append(str(one))
        return made

    def set_permissions(self, file: str | Path) -> None:
        """Give a file that this process has written the permissions of one that Spark would create."""
        os.chmod(file, self.mode)


def on_disk(spark: SparkSession, path: str) -> LocalPath | None:
    """Return a path's location on this machine; None if it is elsewhere, or if this process has no JVM to ask."""
    jvm: Any = getattr(spark, "_jvm", None)
    context: Any = getattr(spark, "_jsc", None)
    if jvm is None or context is None:
        return None
    plain = _PLAIN.fullmatch(path)
    try:
        if plain is not None:
            umask = _known_umask(spark, "file:/" if path.startswith("file:") else "/")
            return None if umask is None else LocalPath(plain["path"], f"file:{plain['path']}", umask)
        place = class_named(jvm, "org.apache.hadoop.fs.Path")(path)
        system = _own_system(jvm, place, context.hadoopConfiguration())
        if system is None:
            return None
        uri = system.makeQualified(place).toUri()
        umask = _umask(jvm, system)
    except Exception:  # no file system for it, or another host in its name: the caller's next access reports it
        return None
    return LocalPath(os.path.normpath(uri.getPath()), f"file:{uri.getRawPath().rstrip('/')}", umask)


def is_known_here(spark: SparkSession, path: str) -> bool:
    """Return whether a path is certainly on this machine, without a JVM call for each path."""
    return _PLAIN.fullmatch(path) is not None and on_disk(spark, path) is not None


def _known_umask(spark: SparkSession, root: str) -> int | None:
    """Return the umask for files below a root, None if it is on no local disk; ask the JVM once for each session.

    A build checks a dozen paths, and each would need as many JVM calls.
    """
    umasks = _umasks.setdefault(spark, {})
    if root not in umasks:
        jvm, conf = spark._jvm, spark._jsc.hadoopConfiguration()
        system = _own_system(jvm, class_named(jvm, "org.apache.hadoop.fs.Path")(root), conf)
        umasks[root] = None if system is None else _umask(jvm, system)
    return umasks[root]


def _own_system(jvm: Any, place: Any, conf: Any) -> Any | None:
    """Return the file system of a path; None if it is not this machine's."""
    scheme = place.toUri().getScheme()
    # opening another file system may require a login
    if (scheme or class_named(jvm, "org.apache.hadoop.fs.FileSystem").getDefaultUri(conf).getScheme()) != "file":
        return None
    system = place.getFileSystem(conf)
    return system if system.getClass().getName() in _OWN else None


def _umask(jvm: Any, system: Any) -> int:
    """Return the umask of a file system by the settings with which it was opened."""
    return int(class_named(jvm, "org.apache.hadoop.fs.permission.FsPermission").getUMask(system.getConf()).toShort())
