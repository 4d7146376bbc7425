"""Answer the calls of a session's catalog by SQL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
from pyspark.errors import AnalysisException

from dbt_zorder.spark.columns import split_name
from dbt_zorder.spark.endpoint.unsupported import UnsupportedError
from dbt_zorder.spark.sql import quote_name

Rows = Sequence[Sequence[Any]]


class CatalogCalls:
    """Answers calls of the catalog.

    Args:
        rows_of: function that returns the rows of a statement.
    """

    def __init__(self, rows_of: Callable[[str], Rows]) -> None:
        self._rows_of = rows_of

    def table(self, call: Any) -> pa.Table:
        """Return the answer in the form that PySpark's catalog reads: values by place.

        Raises:
            UnsupportedError: the call has no form in SQL here.
        """
        kind = call.WhichOneof("cat_type")
        if kind == "list_databases":
            return self._databases()
        answer: Callable[[Any], Sequence[Any]] | None = getattr(self, f"_{kind}", None)
        if answer is None:
            msg = f"The catalog's call '{kind}' cannot be written as SQL."
            raise UnsupportedError(msg)
        return _numbered([answer(getattr(call, kind))])

    def _databases(self) -> pa.Table:
        names = [str(row[0]) for row in self._rows_of("SHOW DATABASES")]
        return _numbered([self._facts_of(quote_name(name)) for name in names])

    def _current_catalog(self, _: Any) -> Sequence[Any]:
        return list(self._rows_of("SELECT current_catalog()")[0])

    def _current_database(self, _: Any) -> Sequence[Any]:
        return list(self._rows_of("SELECT current_database()")[0])

    def _database_exists(self, call: Any) -> Sequence[Any]:
        return [self.has_database(_name(call.db_name))]

    def has_database(self, name: str) -> bool:
        """Return whether there is a database of this name, which is SQL."""
        return self._answers(f"DESCRIBE DATABASE {name}")

    def _get_database(self, call: Any) -> Sequence[Any]:
        return self._facts_of(_name(call.db_name))

    def _facts_of(self, database: str) -> Sequence[Any]:
        """Return name, catalog, comment and location of a database."""
        rows = self._rows_of(f"DESCRIBE DATABASE {database}")
        facts = {_fact(str(row[0])): row[1] for row in rows}
        return [facts.get(name) for name in ("name", "catalog name", "comment", "location")]

    def _table_exists(self, call: Any) -> Sequence[Any]:
        schema = f"{_name(call.db_name)}." if call.db_name else ""
        return [self._answers(f"DESCRIBE TABLE {schema}{_name(call.table_name)}")]

    def _refresh_table(self, call: Any) -> Sequence[Any]:
        self._rows_of(f"REFRESH TABLE {_name(call.table_name)}")
        return []

    def _drop_temp_view(self, call: Any) -> Sequence[Any]:
        return self._dropped(quote_name(call.view_name))

    def _drop_global_temp_view(self, call: Any) -> Sequence[Any]:
        return self._dropped(quote_name("global_temp", call.view_name))

    def _dropped(self, view: str) -> Sequence[Any]:
        self._rows_of(f"DROP VIEW IF EXISTS {view}")
        return [True]

    def _answers(self, statement: str) -> bool:
        try:
            self._rows_of(statement)
        except AnalysisException as exc:
            if "NOT_FOUND" in str(exc):
                return False
            raise
        return True


def _numbered(rows: Rows) -> pa.Table:
    """Return rows as a table whose columns are read by their places."""
    columns = [list(column) for column in zip(*rows, strict=True)]
    return pa.table({str(number): pa.array(column) for number, column in enumerate(columns)} or {"0": pa.array([])})


def _fact(title: str) -> str:
    """Return the name of a database's fact; its own name has one of two titles."""
    return "name" if title in ("Namespace Name", "Database Name") else title.lower()


def _name(text: str) -> str:
    return quote_name(*split_name(text))
