"""Request to build a table: its name, layout, columns with stats, and catalog properties."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

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
from dbt_zorder.layout.hash_index import BUCKET, HashIndex
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
from dbt_zorder.spark.files import has_client
from dbt_zorder.spark.plain_names import check_identifier
from dbt_zorder.spark.sql import quote_name, quote_string

_BLOOM = "parquet.bloom.filter"
_LARGEST_TO_MEAN = 1.25
"""Usual ratio of the largest file's rows to the mean, in a layout by a tree."""

IN_MEMORY = 256 << 20
"""Default limit in bytes: about three million rows of nine columns. Spark with two processors is equally fast there.

See decision 012."""


@dataclass(frozen=True)
class BuildRequest:
    """A request to build one table.

    Attributes:
        table: name of the table.
        spec: specification of the layout.
        stats_columns: additional columns with stats. The clustering columns always have stats.
        key_columns: columns of a unique key; those that the query has get stats, too, by which a merge finds files.
        bloom: columns with a Parquet bloom filter.
        options: options of Spark's Parquet writer, such as ``compression``.
        comment: comment of the table.
        column_comments: comments by column name. A plain name matches in any case, a name in backticks exactly.
        properties: properties of the table.
        location_root: folder for the versions' root, by default the schema's own folder.
        keep_versions: number of versions to retain.
        grace_hours: grace period in hours before an old version is deleted.
        hash_index: hash index of a Parquet table; None for none.
        file_format: file format of the table. Only ``parquet`` tables have versions of this package.
        in_memory: maximum memory in bytes that a query's rows may use in this process to be laid out and written here.
            0 leaves all work to Spark.
        leaves_replaced: keep the folder of a managed table of another writer that the build replaces.
    """

    table: TableName
    spec: LayoutSpec
    stats_columns: Sequence[str] = ()
    key_columns: Sequence[str] = ()
    bloom: Sequence[str] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    comment: str = ""
    column_comments: Mapping[str, str] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)
    location_root: str | None = None
    keep_versions: int = 2
    grace_hours: float = 24.0
    hash_index: HashIndex | None = None
    file_format: str = "parquet"
    in_memory: int = IN_MEMORY
    leaves_replaced: bool = False

    @property
    def placing(self) -> LayoutSpec:
        """The specification by which rows are placed: buckets are partitions, which share the number of files.

        Before the number of buckets is chosen, all files count as those of one bucket.
        """
        spec, index = self.spec, self.hash_index
        if index is None:
            return spec
        files = None if spec.files is None else -(-spec.files // (index.buckets or 1))
        return replace(spec, partition_by=[*spec.partition_by, BUCKET], files=files)

    def buckets_in(self, schema: StructType, *, sensitive: bool) -> tuple[list[str], int]:
        """Return the names of the hash index's columns in a schema, and its number of buckets.

        Without an index there are no names, and the number is 0. It is 0, too, until a build chooses it.

        Raises:
            ColumnError: ``HashIndex.columns`` raised it.
        """
        index = self.hash_index
        if index is None:
            return [], 0
        return [column.name for column in index.columns(schema, sensitive=sensitive)], index.buckets or 0

    def comment_of(self, name: str, *, sensitive: bool = False) -> str:
        """Return the comment of a column. A comment for the name's exact case has priority."""
        given = self.column_comments
        exact = given.get(quote_name(name)) or given.get(name)
        if exact or sensitive:
            return exact or ""
        return {other.lower(): text for other, text in given.items() if other[:1] != "`"}.get(name.lower()) or ""


def partition_columns(spark: SparkSession, schema: StructType, request: BuildRequest) -> list[ResolvedColumn]:
    """Return the partition columns of a request, resolved in the schema of a query or a table."""
    return resolve_all(request.spec.partition_by, schema, sensitive=case_sensitive(spark))


def check(df: DataFrame, request: BuildRequest) -> None:
    """Check a request before anything is read or written.

    Raises:
        ColumnError: a named column does not exist or has an unsupported type, or the query repeats a column name.
        ConfigError: the layout, a partition column or the table's name is not allowed, or ``ESCAPED_LITERALS`` is on.
    """
    if is_on(df.sparkSession, ESCAPED_LITERALS):
        msg = (
            f"{ESCAPED_LITERALS} is true in this Spark session, so that quotes and backslashes in paths and comments "
            "cannot be written as they are; leave it out, or set it to false."
        )
        raise ConfigError(msg)
    if request.file_format != "iceberg":  # Iceberg's catalogs have rules of their own
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
    if request.hash_index is not None:
        _check_hash_index(df, request.hash_index, partitions)
    with naming("zorder_stats_columns"):
        for column in resolve_all(request.stats_columns, df.schema, sensitive=sensitive):
            key_of(column)  # raises for types without an order, which have no minimum and no maximum
    with naming("zorder_bloom"):
        _check_bloom(bloom_columns(df, request))


def _check_hash_index(df: DataFrame, index: HashIndex, partitions: Sequence[ResolvedColumn]) -> None:
    """Raise for a key that has no buckets, or for a column that has the name of the bucket while rows are placed."""
    columns = index.columns(df.schema, sensitive=case_sensitive(df.sparkSession))
    for column in columns:
        if column in partitions:
            msg = f"clustered_by names '{column.name}', a partition column: its files have one value, so leave it out."
            raise ConfigError(msg)
    if any(name.lower() == BUCKET for name in df.columns):
        msg = f"The query has a column '{BUCKET}', a name that clustered_by reserves while rows are placed: rename it."
        raise ColumnError(msg)
    if not has_client(df.sparkSession):
        msg = (
            "clustered_by needs a session in this process, which gives files the names of their buckets; over Spark "
            "Connect, leave it out."
        )
        raise ConfigError(msg)


def _check_bloom(columns: Sequence[ResolvedColumn]) -> None:
    """Raise for columns that cannot have a bloom filter. Parquet's filters distinguish 0.0 and -0.0, and SQL does not.

    Raises:
        ColumnError: a filter on the column would lose rows, or Parquet's writer would not write it.
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
    """Raise for column types that a z-ordered Parquet table does not preserve.

    Raises:
        ColumnError: a column has a user-defined type, or is a CHAR.
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
        # Spark skips no file of a CHAR column by stats. As a STRING its padding would count: c = 'ab' finds nothing.
        name = quote_name(chars[0])
        msg = (
            f"CHAR columns cannot be kept: {', '.join(map(repr, chars))}. Their values come with blanks behind them, "
            f"which would count in the STRING that they become here. Write CAST(rtrim({name}) AS STRING) AS {name} in "
            f"the query, or CAST({name} AS STRING) AS {name} to keep the blanks; a table that has them already needs "
            "--full-refresh."
        )
        raise ColumnError(msg)


def check_names(df: DataFrame) -> None:
    """Raise for column names of a query that a table cannot have.

    Raises:
        ColumnError: two columns have the same name, or Spark would substitute a part of a name.
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


def has_all_columns(columns: StructType, request: BuildRequest, *, sensitive: bool) -> bool:
    """Return whether the columns include every column that the request names."""
    spec = request.spec
    try:
        keyed = () if request.hash_index is None else request.hash_index.by
        for name in (*spec.by, *spec.partition_by, *request.stats_columns, *request.bloom, *keyed):
            resolve(name, columns, sensitive=sensitive)
    except ColumnError:
        return False
    return True


def readable_partitions(df: DataFrame, request: BuildRequest) -> DataFrame:
    """Convert partition columns to the values that Spark reads back from their folder names.

    Replace NULL and the empty text by Spark's folder name for them. Spark would do the same itself, but would then not
    recognize that rows are sorted by a nullable column. It would sort them again, by the partition alone, unless it
    keeps a writer open for each partition.

    Make the query fail for the later of two moments with the same local time, when clocks are set back. Its folder name
    would silently read back as the earlier one.
    """
    for column in partition_columns(df.sparkSession, df.schema, request):
        if isinstance(column.data_type, StringType):
            folder_value = f"coalesce(nullif({column.sql}, ''), '{NULL_PARTITION}')"
            df = df.withColumn(column.name, f.expr(folder_value))
        elif isinstance(column.data_type, TimestampType):
            text = f"CAST({column.sql} AS STRING)"
            complaint = quote_string(
                f"The partition column {column.name} holds a moment that clocks show twice, as they are set back, and "
                "its folder would be that of the other; partition by a date. It is the later "
            )
            same = f"CAST({text} AS TIMESTAMP) <=> {column.sql}"
            df = df.withColumn(
                column.name, f.expr(f"IF({same}, {column.sql}, raise_error(concat({complaint}, {text})))")
            )
    return df


def stats_columns(df: DataFrame, layout: Layout, request: BuildRequest) -> list[ResolvedColumn]:
    """Return the columns with stats: the clustering columns, the request's additional ones, and those of its key."""
    columns = [key.column for key in layout.keys]
    sensitive = case_sensitive(df.sparkSession)
    columns += [resolve(name, df.schema, sensitive=sensitive) for name in request.stats_columns]
    for name in request.key_columns:
        with contextlib.suppress(ColumnError):  # a first run does not use the key, and dbt accepts any
            column = resolve(name, df.schema, sensitive=sensitive)
            key_of(column)
            columns.append(column)
    return list(dict.fromkeys(columns))


def bloom_options(df: DataFrame, request: BuildRequest) -> dict[str, str]:
    """Return the writer options that enable the request's bloom filters."""
    return {f"{_BLOOM}.enabled#{column.name}": "true" for column in bloom_columns(df, request)}


def bloom_sizes(df: DataFrame, request: BuildRequest, layout: Layout) -> dict[str, str]:
    """Return the writer options that size bloom filters by the rows per file, unless the user's options size them.

    The default size is one megabyte per filter. A layout contains no row counts per partition. In a partitioned table
    each filter is therefore sized for all rows.
    """
    rows = layout.rows if layout.partition_columns else -(-layout.rows // max(1, layout.files))
    options = {f"{_BLOOM}.expected.ndv#{column.name}" for column in bloom_columns(df, request)}
    if any(key.lower() == f"{_BLOOM}.adaptive.enabled" for key in request.options):
        return {}
    return dict.fromkeys(options - {*request.options}, str(max(1, round(rows * _LARGEST_TO_MEAN))))


def bloom_columns(df: DataFrame, request: BuildRequest) -> list[ResolvedColumn]:
    """Return the columns with a bloom filter in each file."""
    return resolve_all(request.bloom, df.schema, sensitive=case_sensitive(df.sparkSession))
