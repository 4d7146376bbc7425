"""Match the rows of a batch with those of its table, and say which files contain a row that changes."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, GroupedData, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import DataType, StringType, StructType

from dbt_zorder.errors import ConfigError
from dbt_zorder.layout.hash_index import HashIndex
from dbt_zorder.pruning.files.column_bounds import read_bounds, read_rows
from dbt_zorder.pruning.files.stats_source import Stats
from dbt_zorder.pruning.joins.keys import collect_columns
from dbt_zorder.pruning.plain_sql.scan_files import table_with_stats
from dbt_zorder.pruning.predicate.names import plain_string
from dbt_zorder.spark.catalog import TableInfo, TableName
from dbt_zorder.spark.columns import ResolvedColumn, inner_types
from dbt_zorder.spark.messages import first_line
from dbt_zorder.spark.sql import quote_name
from dbt_zorder.stats.collect import file_metadata
from dbt_zorder.tables.merge import Merge, MergeColumns, has_equality
from dbt_zorder.tables.parquet.buckets.bucket_files import bucket_of
from dbt_zorder.tables.parquet.merge.small_side import sent_whole
from dbt_zorder.tables.parquet.merge.source import ROW, NumberedRows
from dbt_zorder.tables.schema_change import conform

_LOG = logging.getLogger("dbt_zorder")

TARGET, SOURCE = "DBT_INTERNAL_DEST", "DBT_INTERNAL_SOURCE"
"""Names of the table and of the batch in the conditions of a merge, as in dbt's statements."""

FILE, POSITION = "__zorder_file", "__zorder_position"
"""Columns with the path of a row's file, and the number of the row in it."""

CHANGED = "__zorder_changed"
"""Column that says whether a match changes the row of the table."""

_KEYS_SHOWN = 3


@dataclass(frozen=True)
class FileMatches:
    """The matches in one file.

    Attributes:
        rows: number of rows with a match.
        changed: number of these rows that the merge changes.
    """

    rows: int
    changed: int


def with_places(rows: DataFrame, schema: StructType) -> DataFrame:
    """Return the rows of a table in the columns of ``schema``, and the place of each row in its file."""
    metadata = file_metadata(rows)
    placed = rows.select(
        "*", metadata.getField("file_path").alias(FILE), metadata.getField("row_index").alias(POSITION)
    )
    return conform(placed, StructType([*schema.fields, placed.schema[FILE], placed.schema[POSITION]]))


def value_of(number: int) -> str:
    """Return the name of the column with the new value of an updated column, by its number."""
    return f"__zorder_value{number}"


def match(target: DataFrame, source: NumberedRows, columns: MergeColumns, merge: Merge) -> DataFrame:
    """Return the pairs of rows that a merge matches; of ``delete+insert``, the rows of the table.

    Args:
        target: result of ``with_places``.
        source: the batch.
        columns: the columns of the merge.
        merge: its settings.

    Returns:
        ``FILE``, ``POSITION``, ``CHANGED``, then without ``replaces_rows`` also ``ROW`` and the new values.

    Raises:
        ConfigError: Spark cannot read a predicate.
    """
    dest, batch = target.alias(TARGET), sent_whole(source.rows, source.rows.count()).alias(SOURCE)
    keys = [f"{SOURCE}.{key.sql} = {TARGET}.{key.sql}" for key in columns.keys]
    predicates = [f"({predicate}\n)" for predicate in merge.predicates]
    place = [f.expr(f"{TARGET}.{name}") for name in (FILE, POSITION)]
    try:
        if merge.replaces_rows:
            # the predicates of a DELETE are about the table alone
            rows = dest.where(" AND ".join(predicates)) if predicates else dest
            found = rows.join(batch, f.expr(" AND ".join(keys)), "left_semi")
            return found.select(*place, f.lit(True).alias(CHANGED))
        pairs = dest.join(batch, f.expr(" AND ".join([*keys, *predicates])))
    except AnalysisException as exc:
        if not merge.predicates:
            raise
        msg = (
            f"incremental_predicates: Spark cannot read {' and '.join(map(repr, merge.predicates))}: {first_line(exc)} "
            f"The table is {TARGET} there, and the rows of this run are {SOURCE}."
        )
        raise ConfigError(msg) from exc
    same = [_same(name, source.rows.schema[name].dataType) for name in columns.updated]
    changed = f"NOT ({' AND '.join(same)})" if same else "false"
    values = [(value_of(number), f.expr(f"{SOURCE}.{quote_name(name)}")) for number, name in enumerate(columns.updated)]
    found = pairs.select(
        *place,
        f.expr(changed).alias(CHANGED),
        f.expr(f"{SOURCE}.{ROW}").alias(ROW),
        *(value.alias(name) for name, value in values),
    )
    # the values of unchanged rows are not read again
    return found.select(FILE, POSITION, CHANGED, ROW, *(f.when(f.col(CHANGED), f.col(n)).alias(n) for n, _ in values))


def _same(name: str, data_type: DataType) -> str:
    """Return SQL that is TRUE if a column has the same value in both rows; FALSE where Spark cannot say."""
    if not has_equality(data_type) or not _is_plain(data_type):
        return "false"
    return f"{TARGET}.{quote_name(name)} <=> {SOURCE}.{quote_name(name)}"


def _is_plain(data_type: DataType) -> bool:
    """Return whether equal values are the same text: a collation may find 'a' equal to 'A'."""
    if isinstance(data_type, StringType):
        return plain_string(data_type)
    return all(map(_is_plain, inner_types(data_type)))


def count_by_file(pairs: DataFrame) -> tuple[dict[str, FileMatches], int]:
    """Return the matches in each file, by its path, and the number of rows that match two rows of the batch."""
    by_row = _by_row(pairs).agg(f.count(f.lit(1)).alias("matches"), f.max(CHANGED).alias(CHANGED))
    found = (
        by_row.groupBy(FILE)
        .agg(
            f.count(f.lit(1)).alias("rows"),
            f.count_if(f.col(CHANGED)).alias("changed"),
            f.count_if(f.col("matches") > 1).alias("contested"),
        )
        .collect()
    )
    matches = {row[FILE]: FileMatches(row["rows"], row["changed"]) for row in found}
    return matches, sum(row["contested"] for row in found)


def _by_row(pairs: DataFrame) -> GroupedData:
    return pairs.groupBy(FILE, POSITION)


def contested_keys(pairs: DataFrame, source: NumberedRows, columns: MergeColumns) -> str:
    """Return examples of keys that two rows of the batch have, as a text."""
    twice = _by_row(pairs).count().where("count > 1").join(pairs, [FILE, POSITION]).select(ROW)
    keys = source.rows.join(twice, ROW, "left_semi").select(*(f.expr(key.sql) for key in columns.keys)).distinct()
    return ", ".join(_shown(row) for row in keys.limit(_KEYS_SHOWN).collect())


def _shown(row: Sequence[object]) -> str:
    values = [repr(value) if isinstance(value, str) else str(value) for value in row]
    return values[0] if len(values) == 1 else f"({', '.join(values)})"


def files_without_keys(
    spark: SparkSession, table: TableName, info: TableInfo, source: NumberedRows, keys: Sequence[ResolvedColumn]
) -> dict[str, int]:
    """Return path and bytes of the files that cannot contain a key of the batch, by its bucket and its columns' bounds.

    Any failure leaves all files to the match.
    """
    try:
        covered = table_with_stats(spark, table.sql)
        if covered is None:
            return {}
        found = _in_other_buckets(covered.stats, info, source, keys)
        usable = [key for key in keys if len(key.path) == 1 and key.name in covered.columns]
        bounds = [read_bounds(covered.stats, covered.columns[key.name]) for key in usable]
        wanted = [number for number, one in enumerate(bounds) if one.share_apart]
        if not wanted:
            return found
        rows = collect_columns(
            source.rows.select(*(f.col(quote_name(usable[number].name)) for number in wanted)).distinct(),
            range(len(wanted)),
        )
        for place, number in enumerate(wanted):
            values = rows.keys(place)
            if values is not None:
                found |= {path: one.size for path, one in bounds[number].without("=", values).items()}
        return found
    except Exception as exc:
        _LOG.debug("the files of %s are all read for the merge: %s", table, first_line(exc))
        return {}


def _in_other_buckets(
    stats: Stats, info: TableInfo, source: NumberedRows, keys: Sequence[ResolvedColumn]
) -> dict[str, int]:
    """Return path and bytes of the files in whose bucket no key of the batch lies, if the key has a hash index.

    Files without stats were not written by a build or batch, so their names prove nothing.
    """
    index = HashIndex.of_names(info.bucket_columns, info.bucket_count)
    if index is None or not {*info.bucket_columns} <= {key.name for key in keys}:
        return {}
    bucket = index.bucket_sql(source.rows.schema, sensitive=True)
    met = {row[0] for row in source.rows.selectExpr(f"{bucket} AS bucket").distinct().collect()}
    others = {*range(info.bucket_count)} - met
    return {one.path: one.size for one in read_rows(stats) if bucket_of(one.path) in others}
