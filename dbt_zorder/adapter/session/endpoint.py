"""Sessions over connections that answer SQL alone: one for each connection of dbt, which has one for each thread."""

from __future__ import annotations

import logging
import os
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakKeyDictionary

import pyspark
from pyspark.sql import SparkSession

from dbt_zorder.adapter.session.open import CONNECT_MODE, REMOTE_SETTINGS, SessionError
from dbt_zorder.spark.messages import in_one_line

if TYPE_CHECKING:
    from dbt_zorder.adapter.credentials import ZorderCredentials

_LOG = logging.getLogger("dbt_zorder")

_sessions: WeakKeyDictionary[Any, SparkSession] = WeakKeyDictionary()


def has_client() -> bool:
    """Return whether this installation can write plans: PySpark 4 with its client of Spark Connect."""
    return int(pyspark.__version__.split(".")[0]) >= 4 and find_spec("grpc") is not None


def endpoint_session(connection: Any, credentials: ZorderCredentials) -> SparkSession:
    """Return the session over a connection, and set what a layout needs in the server's session on the first call.

    Raises:
        SessionError: Spark itself runs in this process, which leaves no room for a session of another kind.
    """
    found = _sessions.get(connection)
    if found is None:
        if SparkSession.getActiveSession() is not None and CONNECT_MODE not in os.environ:
            msg = (
                "This process has a session in which Spark itself runs, and PySpark allows no other kind beside it: "
                "run dbt in a process of its own."
            )
            raise SessionError(msg)
        os.environ[CONNECT_MODE] = "1"
        from dbt_zorder.spark.endpoint.client import EndpointSession

        found = cast("SparkSession", EndpointSession(connection, credentials.schema or "default"))
        for key, value in REMOTE_SETTINGS.items():
            if key in credentials.server_side_parameters:
                continue
            try:
                found.conf.set(key, value)
            except Exception as exc:  # what needs the setting says so itself
                _LOG.debug("the server does not let %s be set: %s", key, in_one_line(exc))
        _sessions[connection] = found
    return found


def forget_facts(connection: Any) -> None:
    """Forget what the session of a connection has asked for, because a statement of dbt may change it."""
    found: Any = _sessions.get(connection)
    if found is not None:
        found.client.forget_facts()
