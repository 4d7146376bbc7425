"""Operations on z-ordered tables that ``dbt run-operation`` and this package's data tests call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dbt.adapters.events.logging import AdapterLogger
from dbt_common.exceptions import CompilationError
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from dbt_zorder import option_parsers as values
from dbt_zorder import pruning
from dbt_zorder.adapter.config import ModelSettings
from dbt_zorder.adapter.readers import Readers
from dbt_zorder.adapter.requests import as_list, file_settings
from dbt_zorder.advice.advice import advise
from dbt_zorder.advice.condition import Scan
from dbt_zorder.advice.sampling import Asked, sample_reads
from dbt_zorder.advice.workload import Reader, TableKey, UnreadError
from dbt_zorder.errors import ConfigError, ZorderError, did_you_mean
from dbt_zorder.layout.spec import are_weights
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableName, describe
from dbt_zorder.spark.columns import case_sensitive, fold_case
from dbt_zorder.spark.messages import unlogged
from dbt_zorder.spark.sql import quote_name
from dbt_zorder.stats.summary import absent
from dbt_zorder.tables.parquet.operations.vacuum import vacuum
from dbt_zorder.tables.parquet.operations.verify import verify_table
from dbt_zorder.tables.registry import existing, for_format, open_table

_LOG = AdapterLogger("Zorder")


def optimize_table(
    spark: SparkSession, request: BuildRequest, settings: ModelSettings | None, *, dry_run: bool
) -> dict[str, Any]:
    """Rebuild a table from its own rows, or report what that would do. ``text`` is the report for printing."""
    how = settings.optimize if settings is not None else "auto"
    return for_format(spark, request).optimize(request, how, dry_run=dry_run).to_dict()


def explain_table(spark: SparkSession, table: TableName, predicate: str) -> dict[str, Any]:
    """Return the files that a pruned read of a table reads, and why. ``text`` is a printable table of the same."""
    explanation = pruning.explain(spark, existing_name(spark, table).sql, predicate)
    return {**explanation.to_dict(), "text": str(explanation)}


def explain_sql(spark: SparkSession, sql: str) -> dict[str, Any]:
    """Return the files that a statement reads of each table, and why. ``text`` is a printable table of the same."""
    explanation = pruning.explain(spark, sql)
    return {**explanation.to_dict(), "text": str(explanation)}


def advise_on_table(
    spark: SparkSession,
    table: TableName,
    node: Mapping[str, Any] | None,
    readers: Readers,
    queries: Sequence[str],
    weights: Mapping[str, float],
) -> dict[str, Any]:
    """Return advice on the columns to cluster a table by. ``text`` is the advice for printing.

    Args:
        spark: the session.
        table: the table.
        node: the node that builds it; None if no node does.
        readers: the queries of the project that read the table.
        queries: further queries, or predicates on its columns.
        weights: how often nodes run in comparison with others, by name; 1 where it is missing.

    Raises:
        ZorderError: the table does not exist, or is a view.
        ConfigError: an argument or a setting of the model is not allowed.
    """
    info = describe(spark, existing_name(spark, table))
    if info is None or info.is_view:
        msg = f"zorder_advise: {table} is a view, which has no files. Ask about a table that it reads."
        raise ZorderError(msg)
    given = values.read("zorder_advise: queries", queries, values.text_list)
    check_weights(weights, list(readers.queries))
    asked = {**readers.queries, **{f"query {number}": sql for number, sql in enumerate(given, start=1)}}
    reader = Reader(
        (table.schema.lower(), table.identifier.lower()),
        table_columns(spark, table.sql),
        _Columns(spark),
        readers.views,
    )
    scans: list[Scan] = []
    unread = list(readers.failed)
    for name, sql in asked.items():
        try:
            scans += reader.read(name, sql, weights.get(name, 1.0))
        except UnreadError as exc:
            unread.append(f"{name}: {exc}")
    settings = file_settings(node) if node is not None else None
    files = Asked(settings.files, settings.file_size, settings.stats_columns) if settings is not None else Asked()
    sampled, reads = sample_reads(spark, table.sql, scans, files)
    config = node["config"] if node is not None else {}
    advice = advise(str(table), sampled, reads, by=as_list(config.get("zorder_by")), unread=unread)
    return {**advice.to_dict(), "text": str(advice)}


def check_weights(weights: object, names: Sequence[str]) -> None:
    """Raise unless ``weights`` are positive numbers by the names of queries.

    Raises:
        ConfigError: they are not. The message names the nearest node.
    """
    if not isinstance(weights, Mapping) or not are_weights(list(weights.values()), len(weights)):
        msg = f"zorder_advise: weights is {weights!r}, but it must be positive numbers by name, such as {{orders: 24}}."
        raise ConfigError(msg)
    for name in weights:
        if name not in names:
            msg = (
                f"zorder_advise: weights has '{name}', but no query of that name reads the table."
                f"{did_you_mean(str(name), names)} There are: {', '.join(sorted(names)) or 'none'}."
            )
            raise ConfigError(msg)


def vacuum_table(
    spark: SparkSession,
    table: TableName,
    settings: ModelSettings | None,
    keep_versions: int | None,
    grace_hours: float | None,
    *,
    dry_run: bool,
) -> dict[str, Any]:
    """Delete old versions of a table.

    Args:
        spark: the session.
        table: the table.
        settings: settings of the table's model, which locate the versions. None if no model builds the table.
        keep_versions: number of versions to keep, which overrides the settings.
        grace_hours: grace period in hours, which overrides the settings.
        dry_run: whether to report without deleting.

    Returns:
        The names of the ``deleted`` versions, and a ``text`` to print. ``refused`` gives the reason if nothing was
        deleted because the current version is incomplete.
    """
    vacuumed = vacuum(
        spark,
        table,
        keep_versions if keep_versions is not None else settings.keep_versions if settings else 2,
        grace_hours if grace_hours is not None else settings.grace_hours if settings else 24.0,
        settings.location_root if settings else None,
        dry_run=dry_run,
    )
    return {"deleted": list(vacuumed.deleted), "refused": vacuumed.refused, "text": str(vacuumed)}


def compare_with_stats(spark: SparkSession, table: TableName) -> dict[str, Any]:
    """Compare a table with its stats, and return the differences as ``findings``, and a ``text`` to print.

    Return an error as a finding too, so that the operation continues with the next table.
    """
    try:
        found = open_table(spark, table)
        verified = verify_table(spark, table) if found is None else found.verify()
    except ZorderError as exc:
        return {"findings": [str(exc)], "text": str(exc)}
    return {"findings": list(verified.findings), "text": str(verified)}


def find_mismatches(spark: SparkSession, table: TableName, predicates: Sequence[str], made: int) -> list[Any]:
    """Return each predicate whose pruned answer differs from the full one.

    Args:
        spark: the session.
        table: the table to read.
        predicates: the user's predicates.
        made: number of additional predicates to generate from the stats.
    """
    name = existing_name(spark, table).sql
    return pruning.sound(spark, name, [*predicates, *pruning.make_predicates(spark, name, made)])


def count_point_query_files(spark: SparkSession, table: TableName, column: str) -> dict[str, Any]:
    """Return the number of ``files``, and the mean number that an equality query on a column would ``read``.

    Both are 0 for a view, which has no files, so that the test passes.

    Args:
        spark: the session.
        table: the table.
        column: the column's name from the test, in any case. With ``quote: true`` dbt puts it into backticks.

    Raises:
        ZorderError: the column has no stats.
    """
    found = open_table(spark, table)
    if found is not None and found.info is not None and found.info.is_view:
        _LOG.info(f"{table} is a view, which has no files to be clustered: zorder_clustered passes")
        return {"files": 0, "read": 0}
    summary = existing(found, table).summary()
    name, by = column.replace("`", ""), summary.point_query_files
    sensitive = case_sensitive(spark)
    in_any_case = {fold_case(other, sensitive=sensitive): files for other, files in by.items()}
    read = by.get(name, in_any_case.get(fold_case(name, sensitive=sensitive)))
    if read is None:
        msg = (
            f"zorder_clustered: there are no stats of '{name}' in {table}, only of {', '.join(by)}."
            f"{did_you_mean(name, by)}"
        )
        raise ZorderError(msg)
    return {"files": summary.files, "read": read}


def no_such_node(name: str, others: list[str]) -> CompilationError:
    """Return the error for a name that no model, seed or snapshot has. It names the nearest one of ``others``."""
    return CompilationError(
        f"There is no model, seed or snapshot '{name}' in this project.{did_you_mean(name, others)} A table that "
        "is none of them is named as schema.identifier."
    )


def existing_name(spark: SparkSession, table: TableName) -> TableName:
    """Return the name of a table, and raise if the table does not exist.

    Raises:
        ZorderError: the table does not exist.
    """
    if describe(spark, table) is None:
        raise ZorderError(absent(table))
    return table


class _Columns:
    """Function that returns the columns of a table by its key, and asks Spark once for each."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._found: dict[TableKey, Mapping[str, str]] = {}

    def __call__(self, key: TableKey) -> Mapping[str, str]:
        if key not in self._found:
            try:
                with unlogged():
                    self._found[key] = table_columns(self._spark, quote_name(*key))
            except Exception:  # a table that is not built yet
                self._found[key] = {}
        return self._found[key]


def table_columns(spark: SparkSession, name: str) -> dict[str, str]:
    """Return the columns of a table for a parser of SQL, which needs to look into structs alone."""
    return {
        field.name: field.dataType.simpleString() if isinstance(field.dataType, StructType) else "string"
        for field in spark.table(name).schema.fields
    }


def check_dry_run(operation: str, dry_run: object) -> None:
    """Raise unless ``dry_run`` is a boolean, because a text such as ``'false'`` would count as true.

    Raises:
        ConfigError: ``dry_run`` is not a boolean.
    """
    if not isinstance(dry_run, bool):
        msg = f"{operation}: dry_run is {dry_run!r}, but it must be true or false."
        raise ConfigError(msg)
