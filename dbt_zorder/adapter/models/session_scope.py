"""Undo of each model's changes to the session when the model ends, because all dbt threads share one session."""

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


class ModelScope(ExitStack):
    """The callbacks that undo one model's changes to the session, in reverse order."""

    def __init__(self) -> None:
        super().__init__()
        self.keys: set[str] = set()


class ModelScopes:
    """The running models, one per thread. Undoes every change that is registered here when its model ends."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._local = threading.local()
        self._running = 0
        self._baseline: dict[str, str] | None = None
        self._changed: Counter[str] = Counter()
        self._saved: dict[str, dict[str, str | None]] = {}

    def enter(self, spark: SparkSession | None) -> ModelScope:
        """Begin a model in this thread, and return the scope to close when it ends.

        Without a session there are no settings to save.
        """
        scope = ModelScope()
        with self._lock:
            if self._running == 0:
                self._baseline = set_settings(spark) if spark is not None else None
            self._running += 1
        scope.callback(self._leave, self.current())
        self._local.scope = scope
        return scope

    def _leave(self, outer: ModelScope | None) -> None:
        self._local.scope = outer
        with self._lock:
            self._running -= 1

    def current(self) -> ModelScope | None:
        """Return the scope of this thread's model, or None outside of models, such as in ``on-run-start`` hooks."""
        return getattr(self._local, "scope", None)

    def create_view(self, df: DataFrame, name: str) -> str:
        """Register a query as a view until the model ends, and return the view's unique identifier.

        The view is global, because ``SHOW TABLES`` lists a session's temporary views among the tables of every schema.
        It is an SQL view over a second view of the DataFrame. In Spark 4.1 a MERGE fails if its source is a DataFrame
        view that reads an Iceberg table ("No plan for TableReference").
        """
        spark, identifier = df.sparkSession, f"{name}__dbt_tmp_{uuid.uuid4().hex[:12]}"
        rows = f"{identifier}_rows"
        self._create_global_view(df, rows)
        try:
            query = f"SELECT * FROM {quote_name(GLOBAL_VIEWS, rows)}"
            spark.sql(f"CREATE GLOBAL TEMPORARY VIEW {quote_name(identifier)} AS {query}")
        except AnalysisException:  # duplicate column names, which the reader of the rows reports in more detail
            self._create_global_view(df, identifier)
            return identifier
        scope = self.current()
        if scope is not None:
            scope.callback(spark.catalog.dropGlobalTempView, identifier)
        return identifier

    def _create_global_view(self, df: DataFrame, identifier: str) -> None:
        df.createGlobalTempView(identifier)
        scope = self.current()
        if scope is not None:
            scope.callback(df.sparkSession.catalog.dropGlobalTempView, identifier)

    def save_baseline(self, spark: SparkSession) -> None:
        """Save the settings of a session that was opened only after the model had begun."""
        with self._lock:
            if self._baseline is None:
                self._baseline = set_settings(spark)

    def track_statement(self, spark: SparkSession, sql: str) -> None:
        """Restore, when the model ends, the setting that a SET or RESET statement changes. Ignore other statements."""
        match = _SET.match(sql)
        if match is not None:
            zone = SESSION_ZONE if match["zone"] else None
            self._track(spark, zone or (match["key"] or match["reset"]).strip("`"))

    def track_changes(self, spark: SparkSession) -> None:
        """Restore, when the model ends, all settings that differ from the last moment at which no model ran.

        Python models need this, because no statement shows their changes. The differences include changes of other
        running models. A setting is restored when the last model that registered it ends.
        """
        now, before = set_settings(spark), self._baseline or {}
        for key in now.keys() | before.keys():
            if now.get(key) != before.get(key):
                self._track(spark, key)

    def save_settings(self, spark: SparkSession, name: str) -> None:
        """Save this thread's settings under a name, because hooks run before the first of several batches only."""
        scope = self.current()
        if scope is not None and scope.keys:
            now = set_settings(spark)
            self._saved[name] = {key: now.get(key) for key in scope.keys}

    def apply_saved(self, spark: SparkSession, name: str) -> None:
        """Apply the settings saved under a name until this thread's model ends."""
        for key, value in self._saved.get(name, {}).items():
            self._track(spark, key)
            _assign(spark, key, value)

    def _track(self, spark: SparkSession, key: str) -> None:
        scope = self.current()
        if scope is None or key in scope.keys:
            return
        scope.keys.add(key)
        with self._lock:
            self._changed[key] += 1
        scope.callback(self._restore, spark, key)

    def _restore(self, spark: SparkSession, key: str) -> None:
        with self._lock:
            self._changed[key] -= 1
            if self._changed[key]:
                return
            _assign(spark, key, (self._baseline or {}).get(key))


def _assign(spark: SparkSession, key: str, value: str | None) -> None:
    """Set a setting to a value, or to Spark's default if the value is None."""
    if value is None:
        spark.conf.unset(key)
    else:
        spark.conf.set(key, value)


MODEL_SCOPES = ModelScopes()


def run_in_sibling_session(spark: SparkSession, sql: str, values: dict[str, str]) -> bool:
    """Run a statement in a sibling session with other settings. Return False if no such session can be opened."""
    sibling = sibling_session(spark, values)
    if sibling is not None:
        sibling.sql(sql)
    return sibling is not None
