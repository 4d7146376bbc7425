"""Define what an incremental model with a unique key does with the rows of a batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession
from pyspark.sql.types import DataType, StructType

from dbt_zorder.errors import ColumnError, ConfigError
from dbt_zorder.spark.columns import ResolvedColumn, case_sensitive, fold_case, inner_types, naming, resolve
from dbt_zorder.tables.conversion import same_type

STRATEGIES = ("merge", "delete+insert")
"""Incremental strategies of dbt that match rows by a unique key."""

_NOT_COMPARED = ("map", "variant")
"""Types whose values Spark does not compare by ``=``."""


@dataclass(frozen=True)
class Merge:
    """The settings of a merge, as a model names them.

    Attributes:
        unique_key: columns that identify a row; without one, no row matches.
        update_columns: columns that a matched row gets from the batch; None for all columns of the batch.
        exclude_columns: columns that a matched row keeps.
        predicates: SQL conditions that a matched row meets as well. ``DBT_INTERNAL_DEST`` is the table, and
            ``DBT_INTERNAL_SOURCE`` is the batch.
        replaces_rows: delete every matched row, and insert every row of the batch, as ``delete+insert`` does.
    """

    unique_key: Sequence[str] = ()
    update_columns: Sequence[str] | None = None
    exclude_columns: Sequence[str] = ()
    predicates: Sequence[str] = ()
    replaces_rows: bool = False


@dataclass(frozen=True)
class MergeColumns:
    """The columns of a merge, resolved in the columns of the table.

    Attributes:
        keys: columns that identify a row, each once.
        updated: names of the columns that a matched row gets from the batch.
    """

    keys: Sequence[ResolvedColumn]
    updated: Sequence[str]

    def of_same_type(self, existing: StructType) -> list[ResolvedColumn]:
        """Return the keys whose columns have the same type in the table's files: only there bounds and buckets compare.

        Args:
            existing: columns of the table before the batch.
        """
        types = {column.name: column.dataType for column in existing}
        return [key for key in self.keys if key.name in types and same_type(types[key.name], key.data_type)]


def merge_columns(spark: SparkSession, merge: Merge, query: StructType, table: StructType) -> MergeColumns:
    """Resolve the columns that a merge names.

    Args:
        spark: the session, whose rule for upper and lower case applies.
        merge: the settings.
        query: columns of the batch.
        table: columns of the table after the batch.

    Raises:
        ColumnError: a column does not exist in the batch or in the table, or rows cannot be compared by it.
        ConfigError: the settings name columns to update and columns to exclude.
    """
    if merge.update_columns is not None and merge.exclude_columns:
        msg = (
            "merge_update_columns and merge_exclude_columns are both set, and each alone says which columns a matched "
            "row keeps: leave out one of the two."
        )
        raise ConfigError(msg)
    sensitive = case_sensitive(spark)
    keys: list[ResolvedColumn] = []
    with naming("unique_key"):
        for name in merge.unique_key:
            resolve(name, query, sensitive=sensitive)
            key = resolve(name, table, sensitive=sensitive)
            _check_comparable(key)
            if key not in keys:
                keys.append(key)
    in_batch = {fold_case(name, sensitive=sensitive) for name in query.names}
    updated = [name for name in table.names if fold_case(name, sensitive=sensitive) in in_batch]
    if merge.update_columns is not None:
        with naming("merge_update_columns"):
            named = {_whole(name, query, table, sensitive=sensitive) for name in merge.update_columns}
        updated = [name for name in updated if name in named]
    with naming("merge_exclude_columns"):
        kept = {_whole(name, table, table, sensitive=sensitive) for name in merge.exclude_columns}
    return MergeColumns(keys, [name for name in updated if name not in kept])


def _whole(name: str, query: StructType, table: StructType, *, sensitive: bool) -> str:
    """Return the column of the table that a name refers to, which the batch must have as well."""
    resolve(name, query, sensitive=sensitive)
    column = resolve(name, table, sensitive=sensitive)
    if len(column.path) > 1:
        msg = f"'{column.name}' is a field of a struct, and only a whole column can be named."
        raise ColumnError(msg)
    return column.name


def has_equality(data_type: DataType) -> bool:
    """Return whether Spark compares values of a type by ``=``, also those of its fields and elements."""
    return data_type.typeName() not in _NOT_COMPARED and all(map(has_equality, inner_types(data_type)))


def _check_comparable(key: ResolvedColumn) -> None:
    if not has_equality(key.data_type):
        msg = (
            f"The column '{key.name}' is of type {key.data_type.simpleString()}, whose values Spark does not compare. "
            "Name a column of another type."
        )
        raise ColumnError(msg)
