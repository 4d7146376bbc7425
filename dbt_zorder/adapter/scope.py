"""What a model changes in the session, put back when the model ends: all threads of dbt share one session."""

from __future__ import annotations

import re
import threading
import uuid
from contextlib import ExitStack
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.session import _monkey_patch_RDD

_SET = re.compile(
    r"\A(?:\s|/\*.*?\*/|--[^\n]*\n)*"
    r"(?:RESET\s+(?P<reset>[\w.:-]+)|SET\s+(?:(?P<zone>TIME\s+ZONE)\b|(?P<key>`[^`]+`|[\w.:-]+)\s*=))",
    re.IGNORECASE | re.DOTALL,
)


@dataclass
class _Change:
    """A setting that running models have changed: its value before the first of them, and how many they are."""

    before: str | None
    models: int = 0


class Scope(ExitStack):
    """What is to be undone when one model ends, the last first."""

    def __init__(self) -> None:
        super().__init__()
        self.keys: set[str] = set()


class Scopes:
    """The models that run now, one a thread; everything that is registered here is undone when its model ends."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._changes: dict[str, _Change] = {}
        self._running = threading.local()

    def enter(self) -> Scope:
        """Begin a model in this thread, and return what is to be closed when it ends."""
        scope = Scope()
        scope.callback(setattr, self._running, "scope", self.current())
        self._running.scope = scope
        return scope

    def current(self) -> Scope | None:
        """Return what this thread's model will undo; None outside of models, as in ``on-run-start`` hooks."""
        return getattr(self._running, "scope", None)

    def view(self, df: DataFrame, name: str) -> str:
        """Register a query as a view until the model ends; return the view's identifier, which no other view has.

        It is a global temporary view: a session-wide one is listed by ``SHOW TABLES`` among the tables of every schema.
        """
        identifier = f"{name}__dbt_tmp_{uuid.uuid4().hex[:12]}"
        df.createGlobalTempView(identifier)
        scope = self.current()
        if scope is not None:
            scope.callback(df.sparkSession.catalog.dropGlobalTempView, identifier)
        return identifier

    def note_set(self, spark: SparkSession, sql: str) -> None:
        """Remember the setting that a statement is about to change, if it is a SET or RESET of one."""
        found = _SET.match(sql)
        if found is not None and self.current() is not None:
            zone = "spark.sql.session.timeZone" if found["zone"] else None
            key = zone or (found["key"] or found["reset"]).strip("`")
            self.note_change(spark, key, spark.conf.get(key, None))

    def note_change(self, spark: SparkSession, key: str, before: str | None) -> None:
        """Put a setting back when the model ends, or the last of several models that changed it."""
        scope = self.current()
        if scope is None or key in scope.keys:
            return
        scope.keys.add(key)
        with self._lock:
            self._changes.setdefault(key, _Change(before)).models += 1
        scope.callback(self._put_back, spark, key)

    def _put_back(self, spark: SparkSession, key: str) -> None:
        with self._lock:
            change = self._changes[key]
            change.models -= 1
            if change.models:
                return
            del self._changes[key]
            if change.before is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, change.before)


SCOPES = Scopes()


def set_settings(spark: SparkSession) -> dict[str, str]:
    """Return the settings that are set in a session, by key."""
    return {row[0]: row[1] for row in spark.sql("SET").collect()}


def run_aside(spark: SparkSession, sql: str, settings: dict[str, str]) -> bool:
    """Run a statement in a session of its own, which has this one's settings but for those that are given.

    The two share catalog, cached data and global temporary views, not temporary ones. False if there cannot be such a
    session: over Spark Connect.
    """
    try:
        aside = spark.newSession()
    except Exception:
        return False
    for key, value in {**_changed(set_settings(spark), set_settings(aside)), **settings}.items():
        if aside.conf.isModifiable(key) or not key.startswith("spark."):
            aside.conf.set(key, value)
    _monkey_patch_RDD(spark)  # a new session makes itself the one that rdd.toDF() uses
    aside.sql(sql)
    return True


def _changed(ours: dict[str, str], theirs: dict[str, str]) -> dict[str, str]:
    return {key: value for key, value in ours.items() if theirs.get(key) != value}
