"""How a clustered query is written into a format so that nothing moves its rows again, and its statistics are kept."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence

from pyspark.sql import DataFrame, DataFrameWriterV2, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from dbt_zorder.catalog import TableName
from dbt_zorder.columns import ResolvedColumn, all_columns, case_sensitive, leaf_names, resolve_all
from dbt_zorder.errors import ConfigError
from dbt_zorder.formats.carry import NOTHING, Carried, set_properties
from dbt_zorder.formats.own_files import FormatFiles, to_be_added_to, to_be_made
from dbt_zorder.jvm import has_jvm
from dbt_zorder.layout.keys import Key
from dbt_zorder.sql import quote_name, quote_string
from dbt_zorder.stats.delta_log import has_statistics
from dbt_zorder.stats.formats import FORMATS
from dbt_zorder.stats.iceberg_manifests import iceberg_table
from dbt_zorder.table.files import exists
from dbt_zorder.table.request import BuildRequest, partition_columns

_LOG = logging.getLogger("dbt_zorder")

WHOLE = "whole"
"""What a commit says that laid out all of a table."""

TOKEN = "dbt_zorder.token"
"""In the summary of an Iceberg snapshot: by which the commit is found again."""

LAST_NATIVE = "dbt_zorder.last-native-layout"
"""Property of an Iceberg table: the snapshot that its own command last laid out, which takes no note of ours."""

_CATALOG = "spark.sql.catalog.spark_catalog"
NOTE = "dbt_zorder"
"""Under what a commit says so."""
_DELTA_STATS = "delta.dataSkippingStatsColumns"
_DELTA_INDEXED = "delta.dataSkippingNumIndexedCols"
_DELTA_DEFAULT = 32
_BY_COLUMN = ("write.metadata.metrics.column.", "write.parquet.bloom-filter-enabled.column.")
_NEVER_ROLLED = 1 << 50
_OPTIONS = {
    "delta": {"optimizeWrite": "false"},
    "iceberg": {
        # neither shuffled nor sorted by the table's own order, one file a partition and task however large
        "use-table-distribution-and-ordering": "false",
        "distribution-mode": "none",
        "fanout-enabled": "true",
        "target-file-size-bytes": str(_NEVER_ROLLED),
    },
}


def options(request: BuildRequest, *, whole: bool, token: str = "") -> dict[str, str]:
    """Return the writer options of a format, and with ``whole`` the note by which its log knows a whole layout.

    Args:
        request: of the model.
        whole: the write lays out all of the table.
        token: by which the commit is found again.
    """
    found = {**request.options, **_OPTIONS[request.file_format]}
    if whole and request.file_format == "delta":
        found["userMetadata"] = json.dumps({NOTE: WHOLE, "token": token})
    elif whole:
        found |= {f"snapshot-property.{NOTE}": WHOLE, f"snapshot-property.{TOKEN}": token}
    return found


def is_whole(note: str | None) -> bool:
    """Tell whether the note of a Delta commit is that of a whole layout."""
    return note is not None and f'"{NOTE}": "{WHOLE}"' in note


def writer(
    df: DataFrame, table: TableName, request: BuildRequest, *, whole: bool = False, token: str = ""
) -> DataFrameWriterV2:
    """Return a writer that leaves the rows of ``df`` where they are."""
    made = df.writeTo(table.sql).using(request.file_format)
    for name, value in options(request, whole=whole, token=token).items():
        made = made.option(name, value)
    return made


def create(
    df: DataFrame,
    table: TableName,
    request: BuildRequest,
    keys: Sequence[Key],
    *,
    is_new: bool,
    token: str = "",
    kept: Carried = NOTHING,
) -> None:
    """Create a table of the rows of ``df``, or replace one of the same format, in one commit.

    Args:
        df: the rows.
        table: where.
        request: of the model.
        keys: the z-order columns.
        is_new: there is no table of this format by that name.
        token: by which the commit is found again.
        kept: of the table that is there.

    Raises:
        ConfigError: the model's table properties keep no statistics of a z-order column.
    """
    made = writer(df, table, request, whole=True, token=token)
    columns = [key.column for key in keys]
    wanted = table_properties(df, table, request, columns, is_new=is_new)
    if kept.in_place:
        set_properties(df.sparkSession, table, wanted)
        made.overwrite(f.lit(True))
        return
    for name, value in {**kept.properties, **wanted}.items():
        made = made.tableProperty(name, value)
    partitions = partition_columns(df.sparkSession, df.schema, request)
    if partitions:
        made = made.partitionedBy(*(f.col(_parsed_again(column.name)) for column in partitions))
    made.createOrReplace()


def files_of(
    df: DataFrame,
    table: TableName,
    request: BuildRequest,
    keys: Sequence[Key],
    *,
    is_new: bool,
    token: str = "",
    kept: Carried = NOTHING,
) -> FormatFiles | str:
    """Return what takes files that this process writes in place of ``create``; or in a few words why only Spark can."""
    if request.spec.partition_by:
        return "it is parted"
    if kept != NOTHING:
        return "it keeps what others have made of it"
    wanted = table_properties(df, table, request, [key.column for key in keys], is_new=is_new)
    return to_be_made(
        df.sparkSession, request.file_format, table, df.schema, wanted, _told(request, whole=True, token=token)
    )


def added_files(spark: SparkSession, request: BuildRequest, *, replaces: bool) -> FormatFiles | str:
    """Return what takes files of a batch that this process writes; or in a few words why only Spark can write it.

    Args:
        spark: the session.
        request: of the model.
        replaces: the batch replaces partitions.
    """
    if request.spec.partition_by or replaces:
        return "it is parted"
    return to_be_added_to(spark, request.file_format, request.table, _told(request, whole=False))


def same_rows_files(spark: SparkSession, request: BuildRequest, before: str) -> FormatFiles | str:
    """Return what takes files in place of those of a version, whose rows they have; or why only Spark can write them.

    Args:
        spark: the session.
        request: of the model, parted as its table is.
        before: the version.
    """
    if request.spec.partition_by:
        return "it is parted"
    return to_be_added_to(spark, request.file_format, request.table, _told(request, whole=True), before)


def _told(request: BuildRequest, *, whole: bool, token: str = "") -> dict[str, str]:
    """Return what the model's options, and a commit that lays out all of a table, say besides how to write."""
    found = options(request, whole=whole, token=token)
    return {name: value for name, value in found.items() if name not in _OPTIONS[request.file_format]}


def _parsed_again(name: str) -> str:
    """Return a column's name for ``partitionedBy``, which parses the name of what it was given as SQL once more.

    Spark itself puts one with a dot into backticks by then.
    """
    return quote_name(name) if "." in name else quote_name(quote_name(name))


def check_session(spark: SparkSession, request: BuildRequest) -> None:
    """Find out whether a session can write a format at all: Spark's own catalog replaces no table.

    Raises:
        ConfigError: it was not set up for that.
    """
    if not has_jvm(spark):
        msg = (
            f"file_format '{request.file_format}' with zorder_by needs a session in dbt's own process, and this one is "
            "Spark Connect's: leave out one of the two, or set zorder_skip: true."
        )
        raise ConfigError(msg)
    catalog = str(spark.conf.get(_CATALOG, None) or "").lower()
    others = [name for name in FORMATS if name != request.file_format and f".{name}." in catalog]
    if not catalog or others:
        state = f"is set up for {others[0]}" if others else f"is not set up for it ({_CATALOG} is not set)"
        msg = (
            f"file_format is '{request.file_format}', and this Spark session {state}: give the target in profiles.yml "
            f"'zorder_formats: [{request.file_format}]', or the format's own settings in server_side_parameters."
        )
        raise ConfigError(msg)


def table_properties(
    df: DataFrame, table: TableName, request: BuildRequest, keys: Sequence[ResolvedColumn], *, is_new: bool
) -> dict[str, str]:
    """Return the properties of a table: the user's, comment, statistics of the z-order columns, and a new one's place.

    Raises:
        ConfigError: the user's leave a z-order column without statistics.
    """
    found = dict(request.properties)
    if request.location_root and is_new:  # a table that is there stays where it is
        found["location"] = _place(df.sparkSession, table, request, request.location_root.rstrip("/"))
    if request.comment:
        found["comment"] = request.comment
    kept = _delta_statistics if request.file_format == "delta" else _iceberg_metrics
    return {**found, **kept(df, request, keys)}


def _place(spark: SparkSession, table: TableName, request: BuildRequest, root: str) -> str:
    """Return the folder of a new table: its name's own, also where it is written under another name to be renamed."""
    place = f"{root}/{request.table.identifier}"
    if table == request.table or not exists(spark, place):
        return place
    beside = f"{root}/{table.identifier}"
    _LOG.warning("%s is put into %s, since there are other files in %s", request.table, beside, place)
    return beside


def _delta_statistics(df: DataFrame, request: BuildRequest, keys: Sequence[ResolvedColumn]) -> dict[str, str]:
    """Name the columns that Delta keeps statistics of, where its first 32 do not hold all that are z-ordered by."""
    partitions = {column.name for column in partition_columns(df.sparkSession, df.schema, request)}
    leaves = [leaf for leaf in _leaves(df.schema) if leaf.path[0] not in partitions]
    chosen = request.properties.get(_DELTA_STATS)
    if chosen is not None:
        named = {name.strip().replace("`", "").lower() for name in chosen.split(",")}
        _check_kept([key for key in keys if not _is_named(key, named)], request, f"{_DELTA_STATS} '{chosen}'")
        return {}
    first = request.properties.get(_DELTA_INDEXED)
    count = _DELTA_DEFAULT
    if first is not None:
        try:
            count = int(first)
        except ValueError as exc:
            msg = (
                f"{request.table}: the table property {_DELTA_INDEXED} is {first!r}, but it must be a whole number, or "
                "-1 for all columns."
            )
            raise ConfigError(msg) from exc
    if count < 0:
        return {}
    indexed = [leaf.path for leaf in leaves[:count]]
    # a struct is ordered by its first leaf
    missing = [leaf for key in keys if (leaf := _first_leaf(key)).path not in indexed]
    if first is not None:
        _check_kept(missing, request, f"{_DELTA_INDEXED} '{first}'")
    if not missing:
        return {}
    listed = [leaf for leaf in [*missing, *leaves[:count]] if has_statistics(leaf.data_type)]
    return {_DELTA_STATS: ",".join(leaf.sql for leaf in listed)}


def _first_leaf(column: ResolvedColumn) -> ResolvedColumn:
    return _leaves(column.data_type, column.path)[0] if isinstance(column.data_type, StructType) else column


def _iceberg_metrics(df: DataFrame, request: BuildRequest, keys: Sequence[ResolvedColumn]) -> dict[str, str]:
    """Keep whole bounds of the z-order columns, where Iceberg would cut strings, or leave out the 101st column."""
    found = {}
    for key in keys:
        name = f"{_BY_COLUMN[0]}{key.name}"
        mode = request.properties.get(name)
        if mode is None:
            found[name] = "full"
        _check_kept([key] if mode in ("none", "counts") else [], request, f"{name} '{mode}'")
    for column in resolve_all(request.bloom, df.schema, sensitive=case_sensitive(df.sparkSession)):
        found[f"{_BY_COLUMN[1]}{column.name}"] = "true"
    return found


def has_whole_bounds(request: BuildRequest, keys: Sequence[ResolvedColumn]) -> bool:
    """Tell whether a table of Iceberg keeps bounds of the z-order columns as they are, as it does by default."""
    return all(request.properties.get(f"{_BY_COLUMN[0]}{key.name}") in (None, "full") for key in keys)


def _check_kept(missing: Sequence[ResolvedColumn], request: BuildRequest, given: str) -> None:
    if missing:
        msg = (
            f"The table property {given} keeps no statistics of '{missing[0].name}', which zorder_by names: no reader "
            f"could skip a file of {request.table} by it. Leave the property out, or add the column."
        )
        raise ConfigError(msg)


def _is_named(key: ResolvedColumn, named: set[str]) -> bool:
    """Tell whether a column is among some names, by itself or by a struct that it is in."""
    path = [part.lower() for part in key.path]
    return any(".".join(path[:end]) in named for end in range(1, len(path) + 1))


def _leaves(schema: StructType, path: tuple[str, ...] = ()) -> list[ResolvedColumn]:
    """Return all columns in the order in which Delta counts them: struct leaves one by one."""
    return [column for column in all_columns(schema, path) if not isinstance(column.data_type, StructType)]


def forget_columns(spark: SparkSession, request: BuildRequest, schema: StructType) -> None:
    """Remove what Iceberg's properties say of columns that a table has no longer, which keep it from being altered."""
    if request.file_format != "iceberg":
        return
    names = leaf_names(schema)
    stale = [
        name
        for name in iceberg_table(spark, request.table).properties()
        for prefix in _BY_COLUMN
        if name.startswith(prefix) and name.removeprefix(prefix) not in names
    ]
    if stale:
        listed = ", ".join(quote_string(name) for name in stale)
        spark.sql(f"ALTER TABLE {request.table.sql} UNSET TBLPROPERTIES IF EXISTS ({listed})")
