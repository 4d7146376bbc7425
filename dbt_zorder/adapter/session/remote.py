"""The one Spark Connect session of a dbt process: the server owns metastore and warehouse, we set what it lets us."""

from __future__ import annotations

import importlib
import logging
import socket
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from pyspark.sql import SparkSession

from dbt_zorder.errors import ZorderError
from dbt_zorder.spark.messages import in_one_line

_LOG = logging.getLogger("dbt_zorder")

_DEFAULT_PORT = 15002
_KNOCK_SECONDS = 20.0
_RETRIES = 6
"""The first after 0.05 seconds, each further one after four times as long: 68 seconds in all."""
_MISSING = (
    "spark_remote needs the client of Spark Connect: pip install 'pyspark[connect]'. What is missing here: {missing}"
)


class RemoteError(ZorderError):
    """The Spark Connect server cannot be used."""


def connect(url: str, settings: Mapping[str, str]) -> SparkSession:
    """Return a session of a Spark Connect server.

    Args:
        url: as ``sc://host:15002``.
        settings: those that a session may change are set; others belong to the server, which was started with its own.

    Raises:
        RemoteError: there is no client, or no server answers; the message says what to do.
    """
    try:
        importlib.import_module("pyspark.sql.connect.session")  # says which package is missing
    except ImportError as exc:
        raise RemoteError(_MISSING.format(missing=in_one_line(exc))) from exc
    try:
        _knock(url)
    except Exception as exc:
        msg = f"No Spark Connect server answers at {shown(url)} (spark_remote): {_without_secrets(url, exc)}"
        raise RemoteError(msg) from exc
    try:
        session: SparkSession = SparkSession.builder.remote(url).create()  # getOrCreate gives any server's
        session.sql("SHOW DATABASES").collect()  # the first call that reaches the server, and the catalog behind it
    except Exception as exc:
        msg = f"The Spark Connect server at {shown(url)} (spark_remote) gives no session: {_without_secrets(url, exc)}"
        raise RemoteError(msg) from exc
    _try_for_a_minute(session)
    for key, value in settings.items():
        _set(session, key, value)
    return session


def has_left(url: str, session: SparkSession) -> bool:
    """Tell whether a server that was there no longer is, or was started anew and does not know its sessions."""
    try:
        _knock(url)
        session.conf.get("spark.sql.session.timeZone")
    except Exception as exc:
        _LOG.debug("the session of %s has ended: %s", shown(url), _without_secrets(url, exc))
        return True
    return False


def shown(url: str) -> str:
    """Return an address without its parameters, among which is the token."""
    return url.partition(";")[0]


def _without_secrets(url: str, exc: Exception) -> str:
    """Return what an error says, without the parameters of an address, which it may quote by the piece."""
    said = in_one_line(exc)
    for part in (url.partition(";")[2], *url.split(";")[1:]):
        said = said.replace(part, "...") if part else said
    return said


def _knock(url: str) -> None:
    """Find out at once whether anything listens there: the client itself tries again for ten minutes.

    Raises:
        OSError, ValueError: nothing does, or this is no address.
    """
    place = urlsplit(shown(url))
    socket.create_connection((place.hostname or "", place.port or _DEFAULT_PORT), _KNOCK_SECONDS).close()


def _try_for_a_minute(session: SparkSession) -> None:
    """Let a call fail a minute after its server has gone, where PySpark tries for ten, and each further call anew."""
    try:
        from pyspark.sql.connect.client.retries import DefaultPolicy

        remote: Any = session
        remote.client.set_retry_policies([DefaultPolicy(max_retries=_RETRIES)])
    except Exception as exc:  # another version of PySpark
        _LOG.debug("calls are tried again as PySpark does: %s", in_one_line(exc))


def _set(session: SparkSession, key: str, value: str) -> None:
    try:
        # an extension's or a file system's settings are unknown to the server, and may be set
        if session.conf.isModifiable(key) or not key.startswith("spark.sql."):
            session.conf.set(key, value)
            return
    except Exception as exc:
        _LOG.debug("the server does not let %s be set: %s", key, in_one_line(exc))
        return
    _LOG.debug("%s is a setting that the server must be started with", key)
