"""The one Spark session of a dbt process: its settings, and where its metastore and warehouse live."""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

from dbt_zorder.adapter.messages.spark_errors import short_message
from dbt_zorder.adapter.session.environment import configured, hadoop_name
from dbt_zorder.adapter.session.first_target import FirstTarget
from dbt_zorder.adapter.session.gateway import forget, has_ended
from dbt_zorder.adapter.session.java import check_java, collector
from dbt_zorder.adapter.session.remote import connect, has_left, shown
from dbt_zorder.errors import ZorderError
from dbt_zorder.spark.jvm import has_jvm
from dbt_zorder.spark.memory import memory_here
from dbt_zorder.spark.messages import full_text

SESSION_DIRECTORY = ".spark_zorder"
"""Folder of the dbt project that holds the embedded metastore and warehouse."""

LAYOUT_SETTINGS: Mapping[str, str] = {
    # INT96, Spark's default, has no statistics in Parquet footers; read from the session only, not from writer options.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # Above 0, a partitioned write does not sort rows again, which would undo their order inside the files.
    "spark.sql.maxConcurrentOutputFileWriters": "100",
    # A partitioned table then follows one change of its location, because Spark lists its folders itself.
    "spark.sql.hive.manageFilesourcePartitions": "false",
    # One metastore call can then replace a table by one of other columns; counts for the embedded metastore alone.
    "spark.hadoop.hive.metastore.disallow.incompatible.col.type.changes": "false",
}
"""Session-wide settings that layout and pruning need. A profile's ``server_side_parameters`` override each of them."""

REMOTE_SETTINGS = {key: value for key, value in LAYOUT_SETTINGS.items() if key.startswith("spark.sql.")}
"""Those that a session of a Spark Connect server sets for itself."""

QUIET_SETTINGS: Mapping[str, str] = {
    "spark.app.name": "dbt-zorder",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}

METASTORE = "spark.hadoop.javax.jdo.option.ConnectionURL"
_WAREHOUSE = "spark.sql.warehouse.dir"
_HIVE_WAREHOUSE = "spark.hadoop.hive.metastore.warehouse.dir"
_RETRIES = "spark.hadoop.hive.hmshandler.retry.interval"
_LISTING = "spark.sql.sources.parallelPartitionDiscovery.parallelism"
_LISTING_TASKS = 16
"""Tasks that list the folders of a partitioned table. Spark makes one for each folder, up to 10,000, which on one
machine takes far longer than to look into them."""

_LOG = logging.getLogger("dbt_zorder")
_LOG4J = Path(__file__).with_name("log4j2.properties")
_LOCK = threading.Lock()
_opened: dict[str | None, SparkSession] = {}
"""Sessions by the address of their server, None for the one in this process."""
_first: FirstTarget | None = None
"""By which the session in this process was opened, if it was opened here."""


class SessionError(ZorderError):
    """The Spark session cannot be opened."""


def session_settings(user: Mapping[str, str], directory: str) -> dict[str, str]:
    """Return every setting that a session is opened with; those of the user win.

    Where metastore and warehouse are, and what else layout does not need, may also be told by Spark's own files, over
    which a setting of a session would win: of such there is none.

    Args:
        user: the profile's ``server_side_parameters``.
        directory: folder for metastore and warehouse, made by Spark when it is first needed.
    """
    root = Path(directory).absolute()
    files = configured()
    told = {**files, **user}
    named = set(map(hadoop_name, told))
    left_out = {*files, *([_WAREHOUSE] if _HIVE_WAREHOUSE in named else [])}
    by_default = {
        **QUIET_SETTINGS,
        _WAREHOUSE: str(root / "warehouse"),
        METASTORE: f"jdbc:derby:;databaseName={root / 'metastore_db'};create=true",
        "spark.driver.memory": _driver_memory(),
    }
    if is_local(told):
        by_default[_LISTING] = str(max(_LISTING_TASKS, os.cpu_count() or 1))
    # Hive's own may be told by two names each
    layout = {key: value for key, value in LAYOUT_SETTINGS.items() if key not in map(hadoop_name, user)}
    settings = {**{key: value for key, value in by_default.items() if key not in left_out}, **layout, **user}
    if settings.get(METASTORE) == by_default[METASTORE] and _RETRIES not in named:
        # Hive writes ten times, by default two seconds apart, where its own tables have no room for a long comment
        settings[_RETRIES] = "100ms"
    users = told.get("spark.driver.extraJavaOptions", "")
    # Java gets the others as well, before these
    given = f"{told.get('spark.driver.defaultJavaOptions', '')} {users}"
    own = [_java_option(f"-Dderby.stream.error.file={root / 'derby.log'}"), collector(given)]
    if "-Dlog4j" not in given:
        own.append(_java_option(f"-Dlog4j2.configurationFile={_LOG4J.as_uri()}"))
    settings["spark.driver.extraJavaOptions"] = " ".join(filter(None, [*own, users]))
    return settings


def is_local(settings: Mapping[str, str]) -> bool:
    """Tell whether tasks run on this machine, as far as settings say; by default they do."""
    return settings.get("spark.master", "local").startswith("local")


def open_session(user: Mapping[str, str], directory: str, remote: str | None = None) -> SparkSession:
    """Return this process's session, opened on the first call.

    Later calls return the same session and change none of its settings: all dbt threads share it, and a setting that
    one model changed would reach the others. Every server has a session of its own.

    Args:
        user: the profile's ``server_side_parameters``.
        directory: folder for the embedded metastore and warehouse.
        remote: of a Spark Connect server, as ``sc://host:15002``; then there is nothing embedded.

    Raises:
        JavaError: no Java, or one that is too old.
        RemoteError: no Spark Connect server answers.
        SessionError: Spark does not start; the message says why where that is known. Or this process has a session of
            the other kind: PySpark allows one in the process, or some of Spark Connect.
    """
    global _first
    # PySpark 4 logs every error of analysis as JSON with a Java stack trace, also those that are caught
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    with _LOCK:
        for address, session in list(_opened.items()):
            # a server is knocked at only by who wants it: one that is gone may take its time
            if has_ended(session) if address is None else address == remote and has_left(address, session):
                forget(session)
                del _opened[address]
        if remote in _opened:
            if remote is None and _first is not None:
                _first.warn(directory, user)
            return _opened[remote]
        users = None if _opened else _users_session()
        _check_kind(remote, _opened.get(None, users))
        if remote is not None:
            found = connect(remote, {**REMOTE_SETTINGS, **user})
        elif users is not None:
            found, _first = users, None
        else:
            found, settings = _start(user, directory)
            _first = FirstTarget(directory, dict(user), settings)
        if found is not users:
            atexit.register(_stop, found)
        _opened[remote] = found
        return found


def opened(remote: str) -> SparkSession | None:
    """Return the session of a server, None if none was opened yet."""
    return _opened.get(remote)


def _check_kind(remote: str | None, here: SparkSession | None) -> None:
    """Find out whether a session may be opened: PySpark allows one in the process, or some of Spark Connect.

    Raises:
        SessionError: there is one of the other kind.
    """
    if remote is not None and here is not None and has_jvm(here):
        kind = "in which Spark itself runs"
    elif remote is None and _opened:
        kind = f"of Spark Connect, {shown(str(next(iter(_opened))))}"
    else:
        return
    msg = (
        f"This process has a session {kind}, and PySpark allows no other kind beside it: "
        "run dbt in a process of its own."
    )
    raise SessionError(msg)


def _users_session() -> SparkSession | None:
    """Return the session that this process has already, made in whichever thread."""
    try:
        found = SparkSession.active()
    except Exception:  # there is none
        return None
    return None if has_ended(found) else found


def _start(user: Mapping[str, str], directory: str) -> tuple[SparkSession, dict[str, str]]:
    """Return a new session, and the settings that it was opened with."""
    check_java(pyspark.__version__)
    settings = session_settings(user, directory)
    _warn_of_metastore(settings, directory)
    _make(Path(directory))
    _choose_python({**configured(), **user})
    builder = SparkSession.builder.enableHiveSupport()
    for key, value in settings.items():
        builder = builder.config(key, value)
    try:
        session = builder.getOrCreate()
        session.sql("SHOW DATABASES").collect()  # the first call to reach the metastore, and the first that can fail
    except Exception as exc:
        raise _explained(exc, directory) from exc
    return session, settings


def _warn_of_metastore(settings: Mapping[str, str], directory: str) -> None:
    """Say on a first run that tables which a plain session of Spark has made here are in another metastore."""
    beside = Path("metastore_db")
    if (
        beside.is_dir()
        and not Path(directory).exists()
        and str(Path(directory).absolute()) in settings.get(METASTORE, "")
    ):
        _LOG.warning(
            "There is a metastore of Spark in %s. This session has its own, in %s, and does not know those tables, so "
            "incremental models begin anew. To go on with the other, put into server_side_parameters in profiles.yml "
            "'%s: jdbc:derby:;databaseName=%s;create=true' and 'spark.sql.warehouse.dir: %s'.",
            beside.absolute(),
            directory,
            METASTORE,
            beside.absolute(),
            Path("spark-warehouse").absolute(),
        )


def _choose_python(settings: Mapping[str, str]) -> None:
    """Let Python workers on this machine be of the interpreter that runs dbt, whose environment need not be activated.

    Spark would take whatever ``python3`` the path leads to, and refuses one of another version.
    """
    if is_local(settings):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)


def _make(directory: Path) -> None:
    """Make the folder of metastore and warehouse, and keep it out of version control as virtual environments do."""
    directory.mkdir(parents=True, exist_ok=True)
    if not any(directory.iterdir()):
        (directory / ".gitignore").write_text("*\n")


def _stop(session: SparkSession) -> None:
    with contextlib.suppress(Exception):
        session.stop()


def _explained(exc: Exception, directory: str) -> SessionError:
    # Hive says it in one of the causes, far below
    text = full_text(exc)
    if "Another instance of Derby" in text or "XSDB6" in text:
        msg = (
            f"The metastore in {directory} is in use by another process, and an embedded metastore serves one at a "
            "time: wait for the other dbt command to end, or point spark.hadoop.hive.metastore.uris to a shared one."
        )
        return SessionError(msg)
    said = short_message(exc).splitlines()[0].rstrip(".")
    return SessionError(f"Spark did not start: {said}. Look at server_side_parameters, and at what Java printed above.")


def _java_option(text: str) -> str:
    """Return an option of Java as Spark's launcher reads it: it splits them at spaces, and knows quotes."""
    if not set(text).intersection(" \t\"'\\"):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _driver_memory() -> str:
    """Return half of the memory that there is, between 1 and 4 GB: Spark's own 1 GB is too little to sort in."""
    total = memory_here()
    if total is None:
        return "1g"
    return f"{max(1, min(4, total // 2 // 2**30))}g"
