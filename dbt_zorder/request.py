"""What to build: a table, how it is laid out, and what the catalog is to say of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import (
    AtomicType,
    BinaryType,
    DoubleType,
    FloatType,
    StringType,
    StructType,
    TimestampType,
)

from dbt_zorder.errors import ColumnError, ConfigError
from dbt_zorder.layout.keys import key_of
from dbt_zorder.layout.layout import Layout
from dbt_zorder.layout.partitions import NULL_PARTITION
from dbt_zorder.layout.spec import LayoutSpec, keys_for
from dbt_zorder.spark.catalog import TableName
from dbt_zorder.spark.char_types import is_char
from dbt_zorder.spark.columns import (
    USER_DEFINED,
    ResolvedColumn,
    case_sensitive,
    fold_case,
    naming,
    resolve,
    resolve_all,
)
from dbt_zorder.spark.conf import ESCAPED_LITERALS, is_on
from dbt_zorder.spark.plain_names import check_identifier
from dbt_zorder.spark.sql import quote_name, quote_string

_BLOOM = "parquet.bloom.filter"
_UNEVEN = 1.25
"""Of the mean, what a file of a tree's has at most, as a rule."""

IN_MEMORY = 256 << 20
"""By default: three million rows of nine columns, which Spark lays out as fast with two processors (decision 012)."""


@dataclass(frozen=True)
class BuildRequest:
    """What to build.

    Attributes:
        table: where.
        spec: how to lay it out.
        stats_columns: columns to keep stats of besides the clustering columns.
        bloom: columns with a Parquet bloom filter.
        options: of Spark's Parquet writer, such as ``compression``.
        comment: of the table.
        column_comments: by column name, in whatever case, or in backticks in the column's very case.
        properties: of the table.
        location_root: folder for the versions' root; by default the schema's own.
        keep_versions, grace_hours: see ``collect_old``.
        file_format: of the table; only ``parquet`` is built by versions.
        in_memory: bytes that the rows of a query may take in this process's memory to be laid out and written here; 0
            leaves all to Spark.
    """

    table: TableName
    spec: LayoutSpec
    stats_columns: Sequence[str] = ()
    bloom: Sequence[str] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    comment: str = ""
    column_comments: Mapping[str, str] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)
    location_root: str | None = None
    keep_versions: int = 2
    grace_hours: float = 24.0
    file_format: str = "parquet"
    in_memory: int = IN_MEMORY

    def comment_of(self, name: str, *, sensitive: bool = False) -> str:
        """Return the comment of a column; one that is given for its very case comes first."""
        given = self.column_comments
        exact = given.get(quote_name(name)) or given.get(name)
        if exact or sensitive:
            return exact or ""
        return {other.lower(): text for other, text in given.items() if other[:1] != "`"}.get(name.lower()) or ""


def partition_columns(spark: SparkSession, schema: StructType, request: BuildRequest) -> list[ResolvedColumn]:
    """Return the columns of a query, or a table, that the request parts it by."""
    return resolve_all(request.spec.partition_by, schema, sensitive=case_sensitive(spark))


def check(df: DataFrame, request: BuildRequest) -> None:
    """Find all that is wrong with a request before anything is read or written.

    Raises:
        ColumnError, ConfigError: as ``keys_for``; also for stats columns, partition columns and duplicate names, for a
            name that no table can have, and for a session whose literals of text are of another kind.
    """
    if is_on(df.sparkSession, ESCAPED_LITERALS):
        msg = (
            f"{ESCAPED_LITERALS} is true in this Spark session, so that quotes and backslashes in paths and comments "
            "cannot be written as they are; leave it out, or set it to false."
        )
        raise ConfigError(msg)
    if request.file_format != "iceberg":  # whose catalogs have rules of their own
        check_identifier(request.table.identifier)
    check_names(df)
    if request.file_format == "parquet":
        _check_types(df.schema)
    sensitive = case_sensitive(df.sparkSession)
    with naming("partition_by"):
        partitions = partition_columns(df.sparkSession, df.schema, request)
    for part in partitions:
        if part.name.startswith(".") and request.file_format == "parquet":
            msg = f"partition_by names '{part.name}': Spark does not see folders whose names begin with a dot."
            raise ConfigError(msg)
        if isinstance(part.data_type, BinaryType) and request.file_format == "parquet":
            msg = (
                f"partition_by names '{part.name}', which is BINARY: Spark does not read such values back from names "
                f"of folders as they were, X'04' as '%04'. Write hex({part.sql}) in the query."
            )
            raise ConfigError(msg)
        if len(part.path) > 1 and request.file_format != "iceberg":
            msg = f"partition_by names '{part.name}', a field inside a column; only a whole column can part a table."
            raise ConfigError(msg)
    if partitions and len(partitions) == len(df.columns):
        msg = "Every column is a partition column; a table needs at least one more."
        raise ConfigError(msg)
    with naming("zorder_by"):
        keys_for(df, request.spec)
    with naming("zorder_stats_columns"):
        for column in resolve_all(request.stats_columns, df.schema, sensitive=sensitive):
            key_of(column)  # without an order there is no least and no greatest
    with naming("zorder_bloom"):
        _check_bloom(bloom_columns(df, request))


def _check_bloom(columns: Sequence[ResolvedColumn]) -> None:
    """Find out whether filters can serve: Parquet's know 0.0 and -0.0 for two values, which are one to SQL.

    Raises:
        ColumnError: a query would lose rows by one, or it would not be written.
    """
    for column in columns:
        kind = column.data_type
        if isinstance(kind, (FloatType, DoubleType)):
            msg = (
                f"The column '{column.name}' is a {kind.typeName()}, whose bloom filter would tell 0.0 from -0.0: a "
                "query for 0 would lose rows. Leave it out, or make it a decimal."
            )
            raise ColumnError(msg)
        if not isinstance(kind, AtomicType):
            msg = (
                f"The column '{column.name}' is a {kind.typeName()}: only a column of single values can have a filter."
            )
            raise ColumnError(msg)
        if any("." in part for part in column.path):
            msg = f"The column '{column.name}' has a dot in its name, by which Parquet's writer would not find it."
            raise ColumnError(msg)


def _check_types(schema: StructType) -> None:
    """Find out whether a Parquet table of ours keeps all that a query says of its columns' types.

    Raises:
        ColumnError: one is of a type that a user has defined, or CHAR.
    """
    for column in schema.fields:
        if USER_DEFINED in column.json():
            kind = column.dataType.simpleString()
            msg = (
                f"The column '{column.name}' is of a user-defined type, {kind}, with which no table can be declared: "
                "turn it into arrays or structs in the query."
            )
            raise ColumnError(msg)
    chars = [column.name for column in schema.fields if is_char(column)]
    if chars:
        # Spark skips no file of a CHAR column by stats, and as a STRING its blanks would count: c = 'ab' finds nothing
        name = quote_name(chars[0])
        msg = (
            f"CHAR columns cannot be kept: {', '.join(map(repr, chars))}. Their values come with blanks behind them, "
            f"which would count in the STRING that they become here. Write CAST(rtrim({name}) AS STRING) AS {name} in "
            f"the query, or CAST({name} AS STRING) AS {name} to keep the blanks; a table that has them already needs "
            "--full-refresh."
        )
        raise ColumnError(msg)


def check_names(df: DataFrame) -> None:
    """Find out whether the columns of a query have names that a table can keep.

    Raises:
        ColumnError: two have one name, or Spark would replace a part of it.
    """
    sensitive = case_sensitive(df.sparkSession)
    seen: set[str] = set()
    for name in df.columns:
        if "${" in name:
            msg = f"The column '{name}' cannot be kept: Spark replaces '${{...}}' in every statement, also in names."
            raise ColumnError(msg)
        plain = fold_case(name, sensitive=sensitive)
        if plain in seen:
            msg = f"The query produces the column '{name}' twice; every column of a table needs a name of its own."
            raise ColumnError(msg)
        seen.add(plain)


def names_only(columns: StructType, request: BuildRequest, *, sensitive: bool) -> bool:
    """Return whether a table of these columns has each one that the request names."""
    spec = request.spec
    try:
        for name in (*spec.by, *spec.partition_by, *request.stats_columns, *request.bloom):
            resolve(name, columns, sensitive=sensitive)
    except ColumnError:
        return False
    return True


def readable_partitions(df: DataFrame, request: BuildRequest) -> DataFrame:
    """Give partition columns the values that the names of their folders read back as.

    NULL and the empty text become Spark's name for their folder. Spark would do so itself, and for a nullable column
    then not see that rows are sorted by it: it would sort them once more, by the partition alone, where it does not
    keep a writer open for each partition of a task. Of two moments that a clock shows alike when it is set back, the
    later would become the earlier without a word, so the query fails at it.
    """
    for column in partition_columns(df.sparkSession, df.schema, request):
        if isinstance(column.data_type, StringType):
            named = f"coalesce(nullif({column.sql}, ''), '{NULL_PARTITION}')"
            df = df.withColumn(column.name, f.expr(named))
        elif isinstance(column.data_type, TimestampType):
            text = f"CAST({column.sql} AS STRING)"
            told = quote_string(
                f"The partition column {column.name} holds a moment that clocks show twice, as they are set back, and "
                "its folder would be that of the other; partition by a date. It is the later "
            )
            same = f"CAST({text} AS TIMESTAMP) <=> {column.sql}"
            df = df.withColumn(column.name, f.expr(f"IF({same}, {column.sql}, raise_error(concat({told}, {text})))"))
    return df


def stats_columns(df: DataFrame, layout: Layout, request: BuildRequest) -> list[ResolvedColumn]:
    """Return the columns to keep stats of: those of the curve, and what the request names besides."""
    columns = [key.column for key in layout.keys]
    sensitive = case_sensitive(df.sparkSession)
    for name in request.stats_columns:
        column = resolve(name, df.schema, sensitive=sensitive)
        if column not in columns:
            columns.append(column)
    return columns


def bloom_options(df: DataFrame, request: BuildRequest) -> dict[str, str]:
    """Return the writer options that the request's bloom filters are."""
    return {f"{_BLOOM}.enabled#{column.name}": "true" for column in bloom_columns(df, request)}


def bloom_sizes(df: DataFrame, request: BuildRequest, layout: Layout) -> dict[str, str]:
    """Return the writer options that make the filters as large as rows of a file ask for, where none of the user's do.

    By themselves they take a megabyte each. Of how rows are spread over partitions a layout tells nothing.
    """
    rows = layout.rows if layout.partition_columns else -(-layout.rows // max(1, layout.files))
    named = {f"{_BLOOM}.expected.ndv#{column.name}" for column in bloom_columns(df, request)}
    if any(key.lower() == f"{_BLOOM}.adaptive.enabled" for key in request.options):
        return {}
    return dict.fromkeys(named - {*request.options}, str(max(1, round(rows * _UNEVEN))))


def bloom_columns(df: DataFrame, request: BuildRequest) -> list[ResolvedColumn]:
    """Return the columns with a bloom filter in each file."""
    return resolve_all(request.bloom, df.schema, sensitive=case_sensitive(df.sparkSession))
