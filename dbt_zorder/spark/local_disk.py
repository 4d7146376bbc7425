"""Which paths lie on this machine's own disk, where this process does in microseconds what it would ask the JVM for."""

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
"""Hadoop's file system of this machine, and Hive's, which passes all on to it."""

_PLAIN = re.compile(r"(?:file:(?://)?)?(?P<path>(?:/(?!\.\.?(?:/|$))[\w.=-]+)+)/?", re.ASCII)
"""A path that is spelled alike by everybody: no name in it is encoded, up or empty."""

_umasks: WeakKeyDictionary[SparkSession, dict[str, int | None]] = WeakKeyDictionary()


@dataclass(frozen=True)
class Place:
    """A path on this machine's disk.

    Attributes:
        path: absolute.
        uri: the same as Spark lists it, special characters encoded.
        umask: rights that Spark does not give to what it makes there. It is Hadoop's own setting,
            ``fs.permissions.umask-mode``: Hadoop sets the rights of all that it makes, whatever the process's umask.
    """

    path: str
    uri: str
    umask: int

    @property
    def mode(self) -> int:
        """Rights of a file that Spark would make there."""
        return 0o666 & ~self.umask

    @property
    def folder_mode(self) -> int:
        """Rights of a folder that it would make there."""
        return 0o777 & ~self.umask

    def make_folder(self, folder: str) -> None:
        """Make a folder with the rights that Spark would give it.

        Raises:
            OSError: it is there already, or the folder above it is not.
        """
        os.mkdir(folder)
        # below a folder that passes its group on, a folder does so, too: Hadoop's chmod of four digits keeps that
        os.chmod(folder, self.folder_mode | os.stat(folder).st_mode & stat.S_ISGID)

    def make_folders(self, folder: str) -> list[str]:
        """Make a folder and those above it, where they are not there; return those made, the outermost first.

        Raises:
            OSError: one of them cannot be made.
        """
        made = []
        for one in reversed([Path(folder), *Path(folder).parents]):
            with contextlib.suppress(FileExistsError):  # another thread may have been faster
                if not one.is_dir():
                    self.make_folder(str(one))
                    made.append(str(one))
        return made

    def give_rights(self, file: str | Path) -> None:
        """Give a file that this process has written the rights of one that Spark would make."""
        os.chmod(file, self.mode)


def on_disk(spark: SparkSession, path: str) -> Place | None:
    """Return where a path of Spark's lies on this machine; None if elsewhere, or if this process has no JVM to ask."""
    jvm: Any = getattr(spark, "_jvm", None)
    context: Any = getattr(spark, "_jsc", None)
    if jvm is None or context is None:
        return None
    plain = _PLAIN.fullmatch(path)
    try:
        if plain is not None:
            umask = _known_umask(spark, "file:/" if path.startswith("file:") else "/")
            return None if umask is None else Place(plain["path"], f"file:{plain['path']}", umask)
        place = class_named(jvm, "org.apache.hadoop.fs.Path")(path)
        system = _own_system(jvm, place, context.hadoopConfiguration())
        if system is None:
            return None
        uri = system.makeQualified(place).toUri()
        umask = _umask(jvm, system)
    except Exception:  # no file system for it, or another machine in its name: whoever uses it will say so
        return None
    return Place(os.path.normpath(uri.getPath()), f"file:{uri.getRawPath().rstrip('/')}", umask)


def is_known_here(spark: SparkSession, path: str) -> bool:
    """Tell whether a path lies on this machine for sure, without a question to the JVM for each."""
    return _PLAIN.fullmatch(path) is not None and on_disk(spark, path) is not None


def _known_umask(spark: SparkSession, root: str) -> int | None:
    """Return the rights that are taken from files below a root, None if it is on no disk of ours; asked once a session.

    A build asks for a dozen paths, and each takes the JVM as many questions.
    """
    known = _umasks.setdefault(spark, {})
    if root not in known:
        jvm, conf = spark._jvm, spark._jsc.hadoopConfiguration()
        system = _own_system(jvm, class_named(jvm, "org.apache.hadoop.fs.Path")(root), conf)
        known[root] = None if system is None else _umask(jvm, system)
    return known[root]


def _own_system(jvm: Any, place: Any, conf: Any) -> Any | None:
    """Return the file system of a path, None if it is another than this machine's."""
    scheme = place.toUri().getScheme()
    # to open another file system may take a login
    if (scheme or class_named(jvm, "org.apache.hadoop.fs.FileSystem").getDefaultUri(conf).getScheme()) != "file":
        return None
    system = place.getFileSystem(conf)
    return system if system.getClass().getName() in _OWN else None


def _umask(jvm: Any, system: Any) -> int:
    """Return what a file system takes from all rights by its own settings, which are those it was opened with."""
    return int(class_named(jvm, "org.apache.hadoop.fs.permission.FsPermission").getUMask(system.getConf()).toShort())
