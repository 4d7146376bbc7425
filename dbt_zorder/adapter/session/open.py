"""The one Spark session of a dbt process: its settings, and the location of its metastore and warehouse."""

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
from dbt_zorder.adapter.session.environment import hadoop_name, read_spark_files
from dbt_zorder.adapter.session.first_target import FirstTarget
from dbt_zorder.adapter.session.gateway import has_ended, reset_gateway
from dbt_zorder.adapter.session.java import check_java, collector
from dbt_zorder.adapter.session.remote import connect, is_lost, redact
from dbt_zorder.errors import ZorderError
from dbt_zorder.spark.jvm import has_jvm
from dbt_zorder.spark.memory import memory_here
from dbt_zorder.spark.messages import full_text

SESSION_DIRECTORY = ".spark_zorder"
"""Folder of the dbt project that contains the embedded metastore and warehouse."""

LAYOUT_SETTINGS: Mapping[str, str] = {
    # INT96, Spark's default, has no statistics in Parquet footers. Spark ignores this setting among writer options.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # Above 0, a partitioned write does not sort rows again, which would undo their order inside the files.
    "spark.sql.maxConcurrentOutputFileWriters": "100",
    # Spark then lists a partitioned table's folders itself, so that one change of its location moves all partitions.
    "spark.sql.hive.manageFilesourcePartitions": "false",
    # One metastore call can then replace a table by one with other columns. Affects the embedded metastore only.
    "spark.hadoop.hive.metastore.disallow.incompatible.col.type.changes": "false",
}
"""Session-wide settings that layout and pruning need. A profile's ``server_side_parameters`` override them."""

REMOTE_SETTINGS = {key: value for key, value in LAYOUT_SETTINGS.items() if key.startswith("spark.sql.")}
"""The layout settings that a session of a Spark Connect server can set for itself."""

QUIET_SETTINGS: Mapping[str, str] = {
    "spark.app.name": "dbt-zorder",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}

CONNECT_MODE = "SPARK_CONNECT_MODE_ENABLED"
"""Environment variable under which PySpark's functions write plans, and need no JVM."""

METASTORE = "spark.hadoop.javax.jdo.option.ConnectionURL"
_WAREHOUSE = "spark.sql.warehouse.dir"
_HIVE_WAREHOUSE = "spark.hadoop.hive.metastore.warehouse.dir"
_RETRIES = "spark.hadoop.hive.hmshandler.retry.interval"
_LISTING = "spark.sql.sources.parallelPartitionDiscovery.parallelism"
_LISTING_TASKS = 16
"""Number of tasks that list the folders of a partitioned table. Spark's default is one task per folder, up to 10,000.
On one machine, starting those tasks takes far longer than listing the folders."""

_LOG = logging.getLogger("dbt_zorder")
_LOG4J = Path(__file__).with_name("log4j2.properties")
_LOCK = threading.Lock()
_opened: dict[str | None, SparkSession] = {}
"""Open sessions by the address of their server. The key of the session in this process is None."""
_first: FirstTarget | None = None
"""The target that opened the session in this process. None if this module did not open it."""


class SessionError(ZorderError):
    """The Spark session cannot be opened."""


def session_settings(user: Mapping[str, str], directory: str) -> dict[str, str]:
    """Return every setting that a session is opened with. The user's settings override the defaults.

    Leave out a default that layout does not need, such as the metastore, if Spark's own files contain that setting.
    A setting of the session would override the file.

    Args:
        user: the profile's ``server_side_parameters``.
        directory: folder for metastore and warehouse. Spark creates it on first use.
    """
    root = Path(directory).absolute()
    files = read_spark_files()
    configured = {**files, **user}
    names = set(map(hadoop_name, configured))
    left_out = {*files, *([_WAREHOUSE] if _HIVE_WAREHOUSE in names else [])}
    by_default = {
        **QUIET_SETTINGS,
        _WAREHOUSE: str(root / "warehouse"),
        METASTORE: f"jdbc:derby:;databaseName={root / 'metastore_db'};create=true",
        "spark.driver.memory": _driver_memory(),
    }
    if is_local(configured):
        by_default[_LISTING] = str(max(_LISTING_TASKS, os.cpu_count() or 1))
    # each Hive setting has two possible names
    layout = {key: value for key, value in LAYOUT_SETTINGS.items() if key not in map(hadoop_name, user)}
    settings = {**{key: value for key, value in by_default.items() if key not in left_out}, **layout, **user}
    if settings.get(METASTORE) == by_default[METASTORE] and _RETRIES not in names:
        # Hive tries a comment that is too long for its tables ten times, by default two seconds apart
        settings[_RETRIES] = "100ms"
    users = configured.get("spark.driver.extraJavaOptions", "")
    # Java also receives the default options, before these
    given = f"{configured.get('spark.driver.defaultJavaOptions', '')} {users}"
    own = [_java_option(f"-Dderby.stream.error.file={root / 'derby.log'}"), collector(given)]
    if "-Dlog4j" not in given:
        own.append(_java_option(f"-Dlog4j2.configurationFile={_LOG4J.as_uri()}"))
    settings["spark.driver.extraJavaOptions"] = " ".join(filter(None, [*own, users]))
    return settings


def is_local(settings: Mapping[str, str]) -> bool:
    """Return whether the settings run tasks on this machine, which is the default."""
    return settings.get("spark.master", "local").startswith("local")


def open_session(user: Mapping[str, str], directory: str, remote: str | None = None) -> SparkSession:
    """Return this process's session, opened on the first call.

    Later calls return the same session and change none of its settings. All dbt threads share the session, and a
    changed setting would affect the models of other threads. Every server has a session of its own.

    Examples:
        >>> spark = open_session({"spark.sql.ansi.enabled": "false"}, ".spark_zorder")

    Args:
        user: the profile's ``server_side_parameters``.
        directory: folder for the embedded metastore and warehouse.
        remote: address of a Spark Connect server, such as ``sc://host:15002``, or None for the embedded session.

    Raises:
        JavaError: there is no Java, or it is too old.
        RemoteError: no Spark Connect server answers.
        SessionError: Spark does not start; the message gives the cause if Spark reports it. Or this process has a
            session of the other kind: PySpark allows either one local session or sessions of Spark Connect.
    """
    global _first
    # PySpark 4 logs every analysis error as JSON with a Java stack trace, even if the error is caught
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    with _LOCK:
        for address, session in list(_opened.items()):
            # probe only the requested server, because a server that has gone may answer slowly
            if has_ended(session) if address is None else address == remote and is_lost(address, session):
                reset_gateway(session)
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
    """Return the open session of a server, or None."""
    return _opened.get(remote)


def _check_kind(remote: str | None, here: SparkSession | None) -> None:
    """Raise if PySpark allows no new session: it allows either one local session or sessions of Spark Connect.

    Raises:
        SessionError: this process has a session of the other kind.
    """
    if remote is not None and here is not None and has_jvm(here):
        kind = "in which Spark itself runs"
    elif remote is None and _opened:
        kind = f"of Spark Connect, {redact(str(next(iter(_opened))))}"
    elif remote is None and here is None and CONNECT_MODE in os.environ:
        kind = "that writes plans, as SQL for the method of another target"
    else:
        return
    msg = (
        f"This process has a session {kind}, and PySpark allows no other kind beside it: "
        "run dbt in a process of its own."
    )
    raise SessionError(msg)


def _users_session() -> SparkSession | None:
    """Return the session that the user's code opened in this process, in any thread, or None."""
    try:
        found = SparkSession.active()
    except Exception:  # there is none
        return None
    return None if has_ended(found) else found


def _start(user: Mapping[str, str], directory: str) -> tuple[SparkSession, dict[str, str]]:
    """Open a session, and return it with its settings."""
    check_java(pyspark.__version__)
    settings = session_settings(user, directory)
    _warn_of_metastore(settings, directory)
    _make(Path(directory))
    _choose_python({**read_spark_files(), **user})
    builder = SparkSession.builder.enableHiveSupport()
    for key, value in settings.items():
        builder = builder.config(key, value)
    try:
        session = builder.getOrCreate()
        session.sql("SHOW DATABASES").collect()  # the first call to reach the metastore, and the first that can fail
    except Exception as exc:
        raise _start_error(exc, directory) from exc
    return session, settings


def _warn_of_metastore(settings: Mapping[str, str], directory: str) -> None:
    """Warn on a first run if a plain Spark session has created another metastore in the current folder."""
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
    """Run local Python workers with dbt's own interpreter, whose environment need not be activated.

    Spark would run the first ``python3`` on the PATH, and it refuses another version.
    """
    if is_local(settings):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)


def _make(directory: Path) -> None:
    """Create the folder for metastore and warehouse, with a ``.gitignore`` as virtual environments have it."""
    directory.mkdir(parents=True, exist_ok=True)
    if not any(directory.iterdir()):
        (directory / ".gitignore").write_text("*\n")


def _stop(session: SparkSession) -> None:
    with contextlib.suppress(Exception):
        session.stop()


def _start_error(exc: Exception, directory: str) -> SessionError:
    # Hive reports the lock in a cause far down the chain
    text = full_text(exc)
    if "Another instance of Derby" in text or "XSDB6" in text:
        msg = (
            f"The metastore in {directory} is in use by another process, and an embedded metastore serves one at a "
            "time: wait for the other dbt command to end, or point spark.hadoop.hive.metastore.uris to a shared one."
        )
        return SessionError(msg)
    cause = short_message(exc).splitlines()[0].rstrip(".")
    return SessionError(
        f"Spark did not start: {cause}. Look at server_side_parameters, and at what Java printed above."
    )


def _java_option(text: str) -> str:
    """Return a Java option quoted for Spark's launcher, which splits options at spaces and supports quotes."""
    if not set(text).intersection(" \t\"'\\"):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _driver_memory() -> str:
    """Return half of this machine's memory, between 1 and 4 GB. Spark's default of 1 GB is too little for sorting."""
    total = memory_here()
    if total is None:
        return "1g"
    return f"{max(1, min(4, total // 2 // 2**30))}g"
