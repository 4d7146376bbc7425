"""What a model changes in the session, put back when the model ends: all threads of dbt share one session."""

from __future__ import annotations

import re
import threading
import uuid
from collections import Counter
from contextlib import ExitStack

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from dbt_zorder.spark.catalog_entry import GLOBAL_VIEWS
from dbt_zorder.spark.conf import SESSION_ZONE, set_settings, sibling_session
from dbt_zorder.spark.sql import BLANK, quote_name

_SET = re.compile(
    rf"\A{BLANK}"
    r"(?:RESET\s+(?P<reset>[\w.:-]+)|SET\s+(?:(?P<zone>TIME\s+ZONE)\b|(?P<key>`[^`]+`|[\w.:-]+)\s*=))",
    re.IGNORECASE | re.DOTALL,
)


class Scope(ExitStack):
    """What is to be undone when one model ends, the last first."""

    def __init__(self) -> None:
        super().__init__()
        self.keys: set[str] = set()


class Scopes:
    """The models that run now, one a thread; everything that is registered here is undone when its model ends."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._local = threading.local()
        self._running = 0
        self._before: dict[str, str] | None = None
        self._changed: Counter[str] = Counter()
        self._kept: dict[str, dict[str, str | None]] = {}

    def enter(self, spark: SparkSession | None) -> Scope:
        """Begin a model in this thread, and return what is to be closed when it ends; without a session, nothing is."""
        scope = Scope()
        with self._lock:
            if self._running == 0:
                self._before = set_settings(spark) if spark is not None else None
            self._running += 1
        scope.callback(self._leave, self.current())
        self._local.scope = scope
        return scope

    def _leave(self, outer: Scope | None) -> None:
        self._local.scope = outer
        with self._lock:
            self._running -= 1

    def current(self) -> Scope | None:
        """Return what this thread's model will undo; None outside of models, as in ``on-run-start`` hooks."""
        return getattr(self._local, "scope", None)

    def view(self, df: DataFrame, name: str) -> str:
        """Register a query as a view until the model ends; return the view's identifier, which no other view has.

        It is a global temporary view: a session-wide one is listed by ``SHOW TABLES`` among the tables of every schema.
        And it is one of SQL over one of the query: Spark 4.1 plans no MERGE whose source is a view that was made of a
        DataFrame and reads a table of Iceberg ("No plan for TableReference").
        """
        spark, identifier = df.sparkSession, f"{name}__dbt_tmp_{uuid.uuid4().hex[:12]}"
        rows = f"{identifier}_rows"
        self._shared(df, rows)
        try:
            query = f"SELECT * FROM {quote_name(GLOBAL_VIEWS, rows)}"
            spark.sql(f"CREATE GLOBAL TEMPORARY VIEW {quote_name(identifier)} AS {query}")
        except AnalysisException:  # two columns of one name, of which whoever reads the rows tells more
            self._shared(df, identifier)
            return identifier
        scope = self.current()
        if scope is not None:
            scope.callback(spark.catalog.dropGlobalTempView, identifier)
        return identifier

    def _shared(self, df: DataFrame, identifier: str) -> None:
        df.createGlobalTempView(identifier)
        scope = self.current()
        if scope is not None:
            scope.callback(df.sparkSession.catalog.dropGlobalTempView, identifier)

    def look(self, spark: SparkSession) -> None:
        """Take note of the settings of a session that a model comes to use, where none was there when it began."""
        with self._lock:
            if self._before is None:
                self._before = set_settings(spark)

    def note_set(self, spark: SparkSession, sql: str) -> None:
        """Put back at the model's end the setting that a statement changes, if it is a SET or RESET of one."""
        found = _SET.match(sql)
        if found is not None:
            zone = SESSION_ZONE if found["zone"] else None
            self._note(spark, zone or (found["key"] or found["reset"]).strip("`"))

    def note_changes(self, spark: SparkSession) -> None:
        """Put back at the model's end all settings that are not as they were when the last time no model ran.

        For Python models, whose changes no statement tells. Those of other running models are among them; a setting is
        put back when the last model ends that it was noted for.
        """
        now, before = set_settings(spark), self._before or {}
        for key in now.keys() | before.keys():
            if now.get(key) != before.get(key):
                self._note(spark, key)

    def keep(self, spark: SparkSession, name: str) -> None:
        """Remember by a name what this thread's model has set: of several batches, hooks run before the first alone."""
        scope = self.current()
        if scope is not None and scope.keys:
            now = set_settings(spark)
            self._kept[name] = {key: now.get(key) for key in scope.keys}

    def set_again(self, spark: SparkSession, name: str) -> None:
        """Set what was remembered by a name, till this thread's model ends."""
        for key, value in self._kept.get(name, {}).items():
            self._note(spark, key)
            _assign(spark, key, value)

    def _note(self, spark: SparkSession, key: str) -> None:
        scope = self.current()
        if scope is None or key in scope.keys:
            return
        scope.keys.add(key)
        with self._lock:
            self._changed[key] += 1
        scope.callback(self._put_back, spark, key)

    def _put_back(self, spark: SparkSession, key: str) -> None:
        with self._lock:
            self._changed[key] -= 1
            if self._changed[key]:
                return
            _assign(spark, key, (self._before or {}).get(key))


def _assign(spark: SparkSession, key: str, value: str | None) -> None:
    """Give a setting a value; by None, that of Spark's own default."""
    if value is None:
        spark.conf.unset(key)
    else:
        spark.conf.set(key, value)


SCOPES = Scopes()


def run_aside(spark: SparkSession, sql: str, values: dict[str, str]) -> bool:
    """Run a statement under other settings than a session's; False if there cannot be such a session beside it."""
    aside = sibling_session(spark, values)
    if aside is not None:
        aside.sql(sql)
    return aside is not None
