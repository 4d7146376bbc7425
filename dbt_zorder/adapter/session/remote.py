"""Spark Connect session of a dbt process. The server owns metastore, warehouse and most settings."""

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
_PROBE_SECONDS = 20.0
_RETRIES = 6
"""Number of retries. The first comes after 0.05 seconds, each further one after four times as long: 68 s in all."""
_MISSING = (
    "spark_remote needs the client of Spark Connect: pip install 'pyspark[connect]'. What is missing here: {missing}"
)


class RemoteError(ZorderError):
    """The Spark Connect server cannot be used."""


def connect(url: str, settings: Mapping[str, str]) -> SparkSession:
    """Open a session of a Spark Connect server, and return it.

    Args:
        url: address of the server, such as ``sc://host:15002``.
        settings: settings for the session. Those that only the server's start can set are skipped.

    Raises:
        RemoteError: the client is not installed, or no server answers. The message names the remedy.
    """
    try:
        importlib.import_module("pyspark.sql.connect.session")  # says which package is missing
    except ImportError as exc:
        raise RemoteError(_MISSING.format(missing=in_one_line(exc))) from exc
    try:
        _probe(url)
    except Exception as exc:
        msg = f"No Spark Connect server answers at {redact(url)} (spark_remote): {_without_secrets(url, exc)}"
        raise RemoteError(msg) from exc
    try:
        session: SparkSession = SparkSession.builder.remote(url).create()  # getOrCreate may return another server's
        session.sql("SHOW DATABASES").collect()  # the first call that reaches the server, and the catalog behind it
    except Exception as exc:
        msg = f"The Spark Connect server at {redact(url)} (spark_remote) gives no session: {_without_secrets(url, exc)}"
        raise RemoteError(msg) from exc
    _limit_retries(session)
    for key, value in settings.items():
        _set(session, key, value)
    return session


def is_lost(url: str, session: SparkSession) -> bool:
    """Return whether a session is lost, because its server has stopped or has restarted since."""
    try:
        _probe(url)
        session.conf.get("spark.sql.session.timeZone")
    except Exception as exc:
        _LOG.debug("the session of %s has ended: %s", redact(url), _without_secrets(url, exc))
        return True
    return False


def redact(url: str) -> str:
    """Return an address without its parameters, which include the token."""
    return url.partition(";")[0]


def _without_secrets(url: str, exc: Exception) -> str:
    """Return an error's text without the parameters of an address, which it may quote whole or in part."""
    text = in_one_line(exc)
    for part in (url.partition(";")[2], *url.split(";")[1:]):
        text = text.replace(part, "...") if part else text
    return text


def _probe(url: str) -> None:
    """Raise at once if nothing listens at an address. The client itself would retry for ten minutes.

    Raises:
        OSError: nothing listens there.
        ValueError: the URL is no valid address.
    """
    address = urlsplit(redact(url))
    socket.create_connection((address.hostname or "", address.port or _DEFAULT_PORT), _PROBE_SECONDS).close()


def _limit_retries(session: SparkSession) -> None:
    """Limit retries to about a minute per call. PySpark retries for ten minutes, in each call again."""
    try:
        from pyspark.sql.connect.client.retries import DefaultPolicy

        remote: Any = session
        remote.client.set_retry_policies([DefaultPolicy(max_retries=_RETRIES)])
    except Exception as exc:  # another version of PySpark
        _LOG.debug("calls are tried again as PySpark does: %s", in_one_line(exc))


def _set(session: SparkSession, key: str, value: str) -> None:
    try:
        # the server reports settings of extensions and file systems as unmodifiable, although they can be set
        if session.conf.isModifiable(key) or not key.startswith("spark.sql."):
            session.conf.set(key, value)
            return
    except Exception as exc:
        _LOG.debug("the server does not let %s be set: %s", key, in_one_line(exc))
        return
    _LOG.debug("%s is a setting that the server must be started with", key)
