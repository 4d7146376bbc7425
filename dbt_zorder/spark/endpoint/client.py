"""A Spark Connect session without a Spark Connect server: its plans run as SQL text, over a cursor of DB-API 2.

PySpark's client of Spark Connect writes every DataFrame as a plan and sends plans to a server. Here plans become SQL.
Code that works over Spark Connect thus works where only SQL is answered, as by a Thrift server.
"""

from __future__ import annotations

import contextlib
import logging
import re
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql.connect.client import SparkConnectClient
from pyspark.sql.connect.client.core import AnalyzeResult, ConfigResult
from pyspark.sql.connect.session import SparkSession as ConnectSession
from pyspark.sql.metrics import ExecutionInfo
from pyspark.sql.types import StructField, StructType

from dbt_zorder.spark.catalog import NEXT_SUFFIX
from dbt_zorder.spark.conf import CASE_SENSITIVE
from dbt_zorder.spark.ddl import type_ddl
from dbt_zorder.spark.endpoint.catalog import CatalogCalls, Rows
from dbt_zorder.spark.endpoint.plan_text import same_plans, show_all
from dbt_zorder.spark.endpoint.relations import Writer, local_rows
from dbt_zorder.spark.endpoint.results import fetch, statement_table
from dbt_zorder.spark.endpoint.type_text import MORE_FIELDS, parse_type
from dbt_zorder.spark.endpoint.unsupported import UnsupportedError
from dbt_zorder.spark.sql import BLANK, quote_name, quote_string

_LOG = logging.getLogger("dbt_zorder")

_QUERY = re.compile(rf"\A{BLANK}(?:\({BLANK})*(?:select|with|values|from|table)\b", re.IGNORECASE)
_FACT = re.compile(r"DESCRIBE (?:QUERY|FUNCTION) |SET `[^`]+`\Z")
_LASTING = ("SET ", "DESCRIBE FUNCTION ")
_READ = re.compile(rf"{_QUERY.pattern}|\A(?:DESCRIBE|SHOW|EXPLAIN) |{_FACT.pattern}", re.IGNORECASE)
"""Statements that change nothing."""
_ERROR = re.compile(r"org\.apache\.spark\.(?:[\w$]+\.)*(\w+(?:Exception|Error)): (.*?)(?=\n\tat |\Z)", re.DOTALL)
_FIRST_POLL, _LONGEST_POLL = 0.01, 1.0
"""Seconds between two questions whether a statement has ended."""
_SHOWN = 2_000
"""Characters of a statement in the log: the cuts of a tree may be much longer."""
_FINISHED, _RUNNING = 2, (0, 1, 7)
"""States of a statement in HiveServer2's protocol; one that runs is initialized, running or pending."""
_LOCAL_RELATIONS, _UNLIMITED = "spark.sql.session.localRelation", str(1 << 62)
"""Settings of the size from which PySpark sends rows as an artifact; here they are always part of the statement."""
_UNDEFINED = "<undefined>"


class EndpointClient(SparkConnectClient):
    """Runs plans as statements of one connection."""

    def __init__(self, connection: Any, schema: str) -> None:  # a channel to a server is not opened
        """Return the client of a connection.

        Args:
            connection: dbt's handle of the connection, whose ``cursor`` makes the cursor that dbt cancels.
            schema: schema for tables that exist during one statement.
        """
        self.thread_local = threading.local()
        self._connection, self._schema = connection, schema
        self._session_id = str(uuid.uuid4())
        self._closed = False
        self._progress_handlers: list[Any] = []
        self._lock = threading.RLock()
        self._facts: dict[str, Rows] = {}
        self._writer = Writer(self.columns, self._is_case_sensitive)
        self._catalog = CatalogCalls(self.rows)

    # statements

    def _run(self, statement: str) -> tuple[Rows, Rows]:
        """Run a statement to its end, and return its rows and the description of its columns.

        Raises:
            AnalysisException, ParseException, PySparkException: Spark refuses the statement, or it fails.
        """
        with self._lock:
            _LOG.debug("%s", statement if len(statement) <= _SHOWN else f"{statement[:_SHOWN]} ...")
            if not _READ.match(statement):
                self._forget(statement)
            self._connection.cursor()
            cursor = self._connection._cursor
            try:
                _execute(cursor, statement)
                columns = cursor.description or []
                return (list(cursor.fetchall()) if columns else []), columns
            except PySparkException:
                raise
            except Exception as exc:
                raise _error(_text_of(exc)) from exc
            finally:
                # the server keeps the plan of a statement until its cursor is closed
                with contextlib.suppress(Exception):
                    cursor.close()
                self._connection._cursor = None

    def rows(self, statement: str) -> Rows:
        """Run a statement, and return its rows; a fact is asked for once, until another statement may change it."""
        with self._lock:
            is_fact = _FACT.match(statement) is not None
            if is_fact and statement in self._facts:
                return self._facts[statement]
            rows, _ = self._run(statement)
            if is_fact:
                self._facts[statement] = rows
            return rows

    def _forget(self, statement: str) -> None:
        """Forget what a statement may change: settings are changed by SET and RESET alone, and columns by any."""
        is_setting = statement.lstrip()[:5].upper().startswith(("SET", "RESET"))
        kept = {} if is_setting else {key: rows for key, rows in self._facts.items() if key.startswith(_LASTING)}
        self._facts = kept

    def forget_facts(self) -> None:
        """Forget settings and columns, which another statement over this connection may have changed."""
        with self._lock:
            self._facts.clear()

    def columns(self, sql: str) -> StructType:
        """Return the columns of a query without running it.

        Raises:
            ZorderError: a type has no form here.
        """
        described = [(str(row[0]), str(row[1])) for row in self.rows(f"DESCRIBE QUERY {sql}")]
        cut = [number for number, (_, kind) in enumerate(described) if MORE_FIELDS in kind]
        if cut:
            names = [f"c{number}" for number in range(len(described))]
            items = ", ".join(f"typeof(first(c{number}))" for number in cut)
            whole = self.rows(f"SELECT {items} FROM (\n{sql}\n) AS r({', '.join(names)}) WHERE false")[0]
            for number, kind in zip(cut, whole, strict=True):
                described[number] = described[number][0], str(kind)
        return StructType([StructField(name, parse_type(kind)) for name, kind in described])

    def _is_case_sensitive(self) -> bool:
        return self._setting(CASE_SENSITIVE) == "true"

    # what PySpark calls

    def _set_relation_in_plan(self, plan: Any, relation: Any) -> None:
        plan.root.CopyFrom(relation)

    def schema(self, plan: Any) -> StructType:
        """Return the columns of a plan."""
        if self._is_here(plan):
            return local_rows(plan.root.local_relation)[1]
        return self.columns(self._writer.sql(plan.root))

    def _is_here(self, plan: Any) -> bool:
        """Return whether a plan has the rows of a statement, which are in this process."""
        return bool(plan.root.WhichOneof("rel_type") == "local_relation" and plan.root.local_relation.HasField("data"))

    def to_table(self, plan: Any, observations: Any = None) -> tuple[pa.Table, StructType | None, ExecutionInfo]:
        """Return the rows of a plan."""
        info = ExecutionInfo([], [])
        kind = plan.root.WhichOneof("rel_type")
        if kind == "catalog":
            return self._catalog.table(plan.root.catalog), None, info
        if self._is_here(plan):
            return *local_rows(plan.root.local_relation), info
        if kind == "project" and not plan.root.project.expressions:  # rows without columns
            rows = self.rows(self._writer.sql(plan.root))
            return pa.table({"": [row[0] for row in rows]}), StructType([]), info
        sql = self._writer.sql(plan.root)
        schema = self.columns(sql)
        return fetch(self.rows, sql, schema), schema, info

    def to_table_as_iterator(self, plan: Any, observations: Any = None) -> Iterator[StructType | pa.Table]:
        """Yield the columns and the rows of a plan."""
        table, schema, _ = self.to_table(plan)
        assert schema is not None
        yield schema
        yield table

    def execute_command(self, command: Any, observations: Any = None) -> tuple[Any, dict[str, Any], ExecutionInfo]:
        """Run a command: a statement, a write, or the creation of a view.

        Raises:
            UnsupportedError: the command has no form in SQL here.
        """
        kind = command.WhichOneof("command_type")
        found: dict[str, Any] = {}
        if kind == "sql_command":
            found = self._statement(command.sql_command)
        elif kind == "write_operation":
            self._write(command.write_operation)
        elif kind == "create_dataframe_view":
            view = command.create_dataframe_view
            made = f"CREATE {'OR REPLACE ' if view.replace else ''}{'GLOBAL ' if view.is_global else ''}TEMPORARY VIEW"
            self.rows(f"{made} {quote_name(view.name)} AS {self._writer.sql(view.input)}")
        else:
            msg = f"The command '{kind}' cannot be written as SQL."
            raise UnsupportedError(msg)
        return None, found, ExecutionInfo([], [])

    def _statement(self, command: Any) -> dict[str, Any]:
        """Run a statement now, and return its rows as a plan; return nothing for a query, which runs later."""
        relation = command.input
        text = relation.sql.query if relation.WhichOneof("rel_type") == "sql" else ""
        if not text or _QUERY.match(text):
            return {}
        table = statement_table(*self._run(text.strip().rstrip(";")))
        made = type(relation)()
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as stream:
            stream.write_table(table)
        made.local_relation.data = sink.getvalue().to_pybytes()
        return {"sql_command_result": made}

    # writes

    def _write(self, write: Any) -> None:
        sql = self._writer.sql(write.input)
        mode = write.SaveMode.Name(write.mode)
        if write.WhichOneof("save_type") == "table":
            if (
                write.mode
                and "OVERWRITE" in mode
                and "INSERT" in write.table.TableSaveMethod.Name(write.table.save_method)
            ):
                self.rows(f"INSERT OVERWRITE TABLE {write.table.table_name} {sql}")
                return
            msg = "Only the rows of an existing table can be written."
            raise UnsupportedError(msg)
        if "APPEND" in mode:
            self._append(write, sql)
            return
        if "OVERWRITE" not in mode and self._exists(write.source, write.path):
            msg = f"[PATH_ALREADY_EXISTS] Path {write.path} already exists."
            raise AnalysisException(msg)
        options = _options(write.options)
        self.rows(f"INSERT OVERWRITE DIRECTORY {quote_string(write.path)} USING {write.source}{options} {sql}")

    def _append(self, write: Any, sql: str) -> None:
        """Add files to a folder that exists: what leads there during the statement is dropped, and the files stay.

        It is a view of this connection alone. Files of partitions need a table, which has the name of a swap's entry:
        dbt does not see it, should the connection be lost.
        """
        schema, parts = self.columns(sql), list(write.partitioning_columns)
        names = [one.name for one in schema.fields if one.name not in parts] + parts
        columns = ", ".join(f"{quote_name(name)} {type_ddl(schema[name].dataType)}" for name in names)
        options, target = dict(write.options), f"zorder_write_{uuid.uuid4().hex}"
        if parts:
            own = self._catalog.has_database(quote_name(self._schema))
            schema_name = self._schema if own else str(self.rows("SELECT current_database()")[0][0])
            target = quote_name(schema_name, f"{target}{NEXT_SUFFIX}")
            place = f"PARTITIONED BY ({', '.join(map(quote_name, parts))}) LOCATION {quote_string(write.path)}"
            self.rows(f"CREATE TABLE {target} ({columns}) USING {write.source}{_options(options)} {place}")
            sql = f"SELECT {', '.join(map(quote_name, names))} FROM (\n{sql}\n)"
        else:
            options["path"] = write.path
            self.rows(f"CREATE TEMPORARY VIEW {target} ({columns}) USING {write.source}{_options(options)}")
        try:
            self.rows(f"INSERT INTO {target} {sql}")
        finally:
            self.rows(f"DROP {'TABLE' if parts else 'VIEW'} IF EXISTS {target}")

    def _exists(self, source: str, path: str) -> bool:
        try:
            self.rows(f"SELECT 1 FROM {source}.{quote_name(path)} LIMIT 1")
        except AnalysisException as exc:
            if "PATH_NOT_FOUND" in str(exc):
                return False
            raise
        return True

    # questions

    def explain_string(self, plan: Any, explain_mode: str = "extended") -> str:
        """Return Spark's plan as text."""
        return self._plan_text(explain_mode, self._writer.sql(plan.root))

    def same_semantics(self, plan: Any, other: Any) -> bool:
        """Return whether Spark analyses two plans alike; False in doubt."""
        one, two = (self._writer.sql(given.root) for given in (plan, other))
        if not show_all(one, two):
            return False
        return same_plans(self._plan_text("EXTENDED", one), self._plan_text("EXTENDED", two))

    def _plan_text(self, mode: str, sql: str) -> str:
        return "\n".join(str(row[0]) for row in self.rows(f"EXPLAIN {mode} {sql}"))

    def _analyze(self, method: str, **kwargs: Any) -> AnalyzeResult:
        answer: Any = SimpleNamespace()
        if method == "spark_version":
            answer.spark_version = str(self.rows("SELECT version()")[0][0]).split(" ")[0]
        elif method == "schema":
            answer.schema = self.schema(kwargs["plan"])
        elif method == "ddl_parse":
            text = kwargs["ddl_string"]
            try:
                answer.parsed = self.columns(f"SELECT CAST(NULL AS STRUCT<{text}>) AS c")["c"].dataType
            except ParseException:
                answer.parsed = self.columns(f"SELECT CAST(NULL AS {text}) AS c")["c"].dataType
        elif method == "input_files":
            files = self._writer.files_sql(kwargs["plan"].root)
            answer.input_files = [str(row[0]) for row in self.rows(files)]
        elif method == "persist":
            self._keep(kwargs["relation"])
        elif method == "unpersist":
            self._free(kwargs["relation"])
        else:
            msg = f"The question '{method}' cannot be written as SQL."
            raise UnsupportedError(msg)
        return cast("AnalyzeResult", answer)

    def _keep(self, relation: Any) -> None:
        """Let the server keep a plan's rows once they are read, by a view that stands for the plan from now on."""
        view = quote_name(f"zorder_kept_{uuid.uuid4().hex}")
        self.rows(f"CACHE LAZY TABLE {view} AS {self._writer.sql(relation)}")
        self._writer.kept[relation.SerializeToString()] = view

    def _free(self, relation: Any) -> None:
        view = self._writer.kept.pop(relation.SerializeToString(), None)
        if view is not None:
            self.rows(f"UNCACHE TABLE IF EXISTS {view}")
            self.rows(f"DROP VIEW IF EXISTS {view}")

    # settings

    def _setting(self, key: str) -> str | None:
        if key.startswith(_LOCAL_RELATIONS):
            return _UNLIMITED
        value = str(self.rows(f"SET {quote_name(key)}")[0][1])
        return None if value == _UNDEFINED else value

    def config(self, operation: Any) -> ConfigResult:
        """Read or change settings of the connection's session."""
        kind = operation.WhichOneof("op_type")
        pairs: list[tuple[str, str | None]] = []
        if kind == "set":
            for one in operation.set.pairs:
                self.rows(f"SET {quote_name(one.key)}={one.value}")
        elif kind == "unset":
            for key in operation.unset.keys:
                self.rows(f"RESET {quote_name(key)}")
        elif kind == "get":
            pairs = [(key, self._setting(key)) for key in operation.get.keys]
        elif kind == "get_with_default":
            for one in operation.get_with_default.pairs:
                value = self._setting(one.key)
                pairs.append((one.key, one.value if value is None and one.HasField("value") else value))
        elif kind == "is_modifiable":
            pairs = [(key, "true") for key in operation.is_modifiable.keys]
        else:
            msg = f"The settings' call '{kind}' cannot be written as SQL."
            raise UnsupportedError(msg)
        return ConfigResult(pairs, [])

    # the session's end is the connection's

    def interrupt_all(self) -> list[str] | None:
        """Cancel the statement that runs."""
        self._connection.cancel()
        return None

    def release_session(self) -> None:
        """Do nothing: dbt closes the connection."""

    def close(self) -> None:
        """Mark the client as closed."""
        self._closed = True


class EndpointSession(ConnectSession):
    """A session whose plans run as SQL over one connection."""

    def __init__(self, connection: Any, schema: str) -> None:
        """Return a session; the arguments are those of ``EndpointClient``."""
        self._client = EndpointClient(connection, schema)
        self._session_id = self._client._session_id
        self.release_session_on_close = False


def _execute(cursor: Any, statement: str) -> None:
    """Run a statement to its end; ask for its state where the cursor can tell it.

    Raises:
        PySparkException: it failed, or was cancelled.
    """
    if not hasattr(cursor, "poll"):
        cursor.execute(statement)
        return
    # asked for again and again: a server may drop a connection that is silent for minutes
    cursor.execute(statement, async_=True)
    wait, state = _FIRST_POLL, cursor.poll()
    while state.operationState in _RUNNING:
        time.sleep(wait)
        wait, state = min(_LONGEST_POLL, wait * 1.5), cursor.poll()
    if state.operationState != _FINISHED:
        raise _error(state.errorMessage or f"the statement ended in the state {state.operationState}")


def _options(options: Mapping[str, str]) -> str:
    listed = ", ".join(f"{quote_string(key)} {quote_string(value)}" for key, value in options.items())
    return f" OPTIONS ({listed})" if listed else ""


def _text_of(exc: Exception) -> str:
    """Return the server's message in an error of the cursor."""
    status = getattr(exc.args[0] if exc.args else None, "status", None)
    return str(getattr(status, "errorMessage", None) or exc)


def _error(text: str) -> PySparkException:
    """Return the error that Spark Connect would raise for a server's message."""
    found = _ERROR.search(text)
    kind, message = (found[1], found[2]) if found else ("", text)
    if "Parse" in kind:
        return ParseException(message)
    if "Analysis" in kind or "NoSuch" in kind or "AlreadyExists" in kind:
        return AnalysisException(message)
    return PySparkException(message)
