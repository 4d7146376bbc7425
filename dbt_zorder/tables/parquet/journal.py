"""Write batches beside a version's data, then move them in by steps that can be repeated.

An entry is a folder inside the version's own, hidden from readers by its name:

    <version>/_zorder_journal/<entry>/
        owner.json                the process that works on it
        data-<entry>/             the batch's files, in their partition folders
        _zorder_stats/            their stats, under their final paths
        plan.json                 the files to move and their places; written last and atomically, makes the entry ready
        old/                      files that the batch replaces, moved out of the way

Before the plan is written, readers see no change, and the entry can be deleted. Afterwards this run or the next one
carries it out. Every step renames one file, and repeating it does nothing.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import secrets
import socket
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from datetime import datetime, timedelta, timezone
from typing import Any

from pyspark.sql import SparkSession

from dbt_zorder.errors import ZorderError
from dbt_zorder.spark.files import (
    delete_empty,
    delete_path,
    exists,
    has_client,
    list_folders,
    move,
    read_text,
    write_text,
)
from dbt_zorder.spark.inner_path import check_links, data_file, stats_file
from dbt_zorder.spark.local_disk import on_disk
from dbt_zorder.stats.schema import STATS_DIRECTORY

_LOG = logging.getLogger("dbt_zorder")

JOURNAL_DIRECTORY = "_zorder_journal"
_FORMAT = 1
_NAME = re.compile(r"b(\d{8}T\d{9})-[0-9a-f]{8}", re.ASCII)
_ABANDONED = timedelta(hours=24)
"""Age after which an entry that is not ready counts as abandoned, if another machine began it."""

_OPENING = timedelta(minutes=10)
"""The same age for an entry without an owner, which was just begun, or whose run died right then."""

_open_here: set[str] = set()
"""Names of the entries that a thread of this process is working on."""


@dataclass(frozen=True)
class JournalEntry:
    """A journal entry of the version at ``version_path``."""

    version_path: str
    name: str

    @property
    def path(self) -> str:
        """The entry's folder."""
        return f"{self.version_path.rstrip('/')}/{JOURNAL_DIRECTORY}/{self.name}"

    @property
    def data(self) -> str:
        """The folder for the batch's files."""
        return f"{self.path}/data-{self.name}"

    @property
    def hidden_part(self) -> str:
        """The part of a staged file's path between the version's folder and its final relative path."""
        return f"/{JOURNAL_DIRECTORY}/{self.name}/data-{self.name}/"


@dataclass(frozen=True)
class MovePlan:
    """The steps of a batch. Paths of data are relative to the version's folder.

    Attributes:
        adds: files to move in.
        removes: files that they replace.
        stats_adds: names of stats files to move in.
        stats_removes: names of stats files that these replace.
        format: format number of the plan.
    """

    adds: Sequence[str]
    removes: Sequence[str]
    stats_adds: Sequence[str]
    stats_removes: Sequence[str]
    format: int = _FORMAT


def open_entry(spark: SparkSession, version_path: str) -> JournalEntry:
    """Create an entry under a unique name."""
    now = datetime.now(timezone.utc)
    name = f"b{now:%Y%m%dT%H%M%S}{now.microsecond // 1000:03d}-{secrets.token_hex(4)}"
    entry = JournalEntry(version_path, name)
    _open_here.add(name)
    write_text(spark, f"{entry.path}/owner.json", json.dumps({"host": _here(), "pid": os.getpid()}))
    return entry


def make_ready(spark: SparkSession, entry: JournalEntry, plan: MovePlan) -> None:
    """Write the plan: from now on the batch belongs to the table, and the next run completes it if need be.

    Raises:
        ZorderError: the plan has paths that lead out of the version's folder, and would be refused later.
    """
    _parse(spark, entry, asdict(plan))
    write_text(spark, f"{entry.path}/plan.json", json.dumps(asdict(plan)))


def carry_out(spark: SparkSession, entry: JournalEntry, plan: MovePlan) -> None:
    """Move the files of an entry to their places, folder by folder, then their stats, and delete the entry.

    In each folder the replaced files are moved out first. A reader that lists the folder in between finds neither set.
    One that listed it before gets an error. No reader finds rows twice.

    Raises:
        OSError: files of the batch are missing, or could not be renamed.
    """
    root = entry.version_path.rstrip("/")
    lost = [
        path for path in plan.adds if not exists(spark, f"{entry.data}/{path}") and not exists(spark, f"{root}/{path}")
    ]
    if lost:
        # nothing was moved out for these files; those that an earlier attempt moved in are in place
        msg = f"{len(lost)} files of the batch are neither in the journal nor in their places, {lost[0]} first."
        raise OSError(msg)
    for folder in sorted({_folder(path) for path in [*plan.adds, *plan.removes]}):
        for path in (path for path in plan.removes if _folder(path) == folder):
            # with another extension: some engines treat each *.parquet below the folder as part of the table
            move(spark, f"{root}/{path}", f"{entry.path}/old/{path}.old")
        for path in (path for path in plan.adds if _folder(path) == folder):
            move(spark, f"{entry.data}/{path}", f"{root}/{path}")
    for name in plan.stats_adds:
        move(spark, f"{entry.path}/{STATS_DIRECTORY}/{name}", f"{root}/{STATS_DIRECTORY}/{name}")
    for name in plan.stats_removes:
        delete_path(spark, f"{root}/{STATS_DIRECTORY}/{name}")
    close_entry(spark, entry)


def close_entry(spark: SparkSession, entry: JournalEntry) -> None:
    """Delete an entry: its plan first, so that the rest can only be deleted."""
    delete_path(spark, f"{entry.path}/plan.json")
    delete_path(spark, entry.path)
    journal = f"{entry.version_path.rstrip('/')}/{JOURNAL_DIRECTORY}"
    with contextlib.suppress(Exception):  # another run may be opening an entry
        delete_empty(spark, journal)
    _open_here.discard(entry.name)


def leave_entry(entry: JournalEntry) -> None:
    """Stop work on an entry that failed midway; the next run continues it."""
    _open_here.discard(entry.name)


def recover_journal(spark: SparkSession, version_path: str) -> tuple[int, int]:
    """Complete the ready entries of a version, oldest first, and delete the abandoned ones.

    An entry that is not ready stays while the process that began it is alive. If that process is on another machine,
    the entry stays for 24 hours. Folders with other names are never touched.

    Returns:
        The numbers of entries completed and deleted.

    Raises:
        ZorderError: ``read_plan`` raised it; all older entries are completed.
    """
    journal = f"{version_path.rstrip('/')}/{JOURNAL_DIRECTORY}"
    completed = deleted = 0
    for name in list_folders(spark, journal):
        if _NAME.fullmatch(name) is None or name in _open_here:
            continue
        entry = JournalEntry(version_path, name)
        if exists(spark, f"{entry.path}/plan.json"):
            carry_out(spark, entry, read_plan(spark, entry))
            completed += 1
        elif not _is_alive(spark, entry):
            close_entry(spark, entry)
            deleted += 1
    if completed or deleted:
        _LOG.info("journal of %s: %d batches completed, %d unfinished ones deleted", version_path, completed, deleted)
    return completed, deleted


def ready_entries(spark: SparkSession, version_path: str) -> list[JournalEntry]:
    """Return the entries of a version whose batches belong to the table but are not fully moved in.

    The list is empty over Spark Connect, where files cannot be renamed, and so no journal is kept.
    """
    if not has_client(spark):
        return []
    journal = f"{version_path.rstrip('/')}/{JOURNAL_DIRECTORY}"
    entries = [JournalEntry(version_path, name) for name in list_folders(spark, journal) if _NAME.fullmatch(name)]
    return [entry for entry in entries if exists(spark, f"{entry.path}/plan.json")]


def read_plan(spark: SparkSession, entry: JournalEntry) -> MovePlan:
    """Return the plan of an entry that is ready.

    Raises:
        ZorderError: the plan is of another release, or leads out of the version's folder; nothing was moved.
    """
    try:
        found = json.loads(read_text(spark, f"{entry.path}/plan.json"))
    except (ValueError, RecursionError) as exc:
        raise _refused(entry, f"it is no JSON ({type(exc).__name__})") from exc
    if isinstance(found, dict) and found.get("format") != _FORMAT:
        msg = (
            f"The journal entry {entry.path} is of format {found.get('format')!r}, and this release of dbt-zorder "
            f"knows {_FORMAT}: complete it with the release that wrote it, or run the model with --full-refresh."
        )
        raise ZorderError(msg)
    return _parse(spark, entry, found)


def _parse(spark: SparkSession, entry: JournalEntry, found: Any) -> MovePlan:
    """Parse the plan of an entry, and check that each path leads to a file below the version's own folder.

    Raises:
        ZorderError: the plan is invalid, or a path leads elsewhere.
    """
    try:
        keys = {one.name for one in fields(MovePlan)}
        if not isinstance(found, dict) or {*found} != keys:
            msg = f"it is no object with the keys {', '.join(sorted(keys))}"
            raise ValueError(msg)
        wrong = [key for key in keys - {"format"} if not isinstance(found[key], list)]
        if wrong:
            msg = f"its {wrong[0]} is no list"
            raise ValueError(msg)
        plan = MovePlan(
            [data_file(path) for path in found["adds"]],
            [data_file(path) for path in found["removes"]],
            [stats_file(name) for name in found["stats_adds"]],
            [stats_file(name) for name in found["stats_removes"]],
            found["format"],
        )
        _check_links(spark, entry, plan)
    except ValueError as exc:
        raise _refused(entry, str(exc)) from exc
    return plan


def _check_links(spark: SparkSession, entry: JournalEntry, plan: MovePlan) -> None:
    """Check on a local file system that no folder in the moves of a plan is a link.

    Raises:
        ValueError: one is.
    """
    here = on_disk(spark, entry.version_path)
    if here is None:
        return
    inside = f"{JOURNAL_DIRECTORY}/{entry.name}"
    data = {_folder(path) for path in [*plan.adds, *plan.removes]}
    staged = (f"{inside}/{place}/{folder}" for folder in data for place in (f"data-{entry.name}", "old"))
    stats = (STATS_DIRECTORY, f"{inside}/{STATS_DIRECTORY}")
    check_links(here.path, [one.rstrip("/") for one in (inside, *stats, *data, *staged)])


def _refused(entry: JournalEntry, why: str) -> ZorderError:
    return ZorderError(
        f"The journal entry {entry.path} has a plan.json that no batch of dbt-zorder's wrote: {why}. Nothing was moved "
        "or deleted. Find out who writes to this folder; to go on without the batch, delete the entry, or run the "
        "model with --full-refresh."
    )


def _here() -> str:
    """Return an identity of this machine, or of this container, within which process ids are unique."""
    space = ""
    with contextlib.suppress(OSError):
        space = os.readlink("/proc/self/ns/pid")
    return f"{socket.gethostname()} {space}".strip()


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def _is_alive(spark: SparkSession, entry: JournalEntry) -> bool:
    """Return whether a run may still be working on an entry."""
    match = _NAME.fullmatch(entry.name)
    assert match is not None
    began = datetime.strptime(match[1] + "000", "%Y%m%dT%H%M%S%f").replace(tzinfo=timezone.utc)
    host, process = _owner(spark, entry)
    if host != _here():  # or the entry is just being opened, and has no owner yet
        return datetime.now(timezone.utc) - began <= (_ABANDONED if host else _OPENING)
    if process == os.getpid():
        return False  # this process began it, and none of its threads works on it
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True


def _owner(spark: SparkSession, entry: JournalEntry) -> tuple[str, int]:
    """Return host and process id of the run that began an entry; an empty host if they are missing."""
    with contextlib.suppress(Exception):
        owner = json.loads(read_text(spark, f"{entry.path}/owner.json"))
        host, process = owner["host"], owner["pid"]
        if type(host) is str and type(process) is int and process > 0:
            return host, process
    return "", 0
