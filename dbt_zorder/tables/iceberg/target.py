"""Write files of an Iceberg table in this process, and commit them.

It calls the same Java library as Iceberg's own Spark writer. The catalog stages a table as for CREATE OR REPLACE
TABLE AS SELECT. The files are appended, and one commit publishes both.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import types as t

from dbt_zorder.engine.parquet.writer import CODECS, ArrowWriter, missing_feature, threads_of
from dbt_zorder.layout.page_order import parse_page_rows
from dbt_zorder.spark.catalog import TableName
from dbt_zorder.spark.catalog_entry import ICEBERG_CATALOG
from dbt_zorder.spark.conf import first_below
from dbt_zorder.spark.jvm import catalog_identifier, class_named, is_error_of, items, jvm_of, nullable_type
from dbt_zorder.spark.local_disk import on_disk
from dbt_zorder.spark.sql import quote_name
from dbt_zorder.stats.arrow_store import VERSION_KEY, footer_entries
from dbt_zorder.stats.iceberg.manifests import iceberg_table
from dbt_zorder.tables.iceberg.metrics import FileMetrics
from dbt_zorder.tables.iceberg.schema import field_numbers
from dbt_zorder.tables.lakehouse.written_file import WrittenFile, why_not_partitioned

_CATALOG = "spark_catalog"
_PAGE, _OLDEST_CODEC = "20000", "gzip"
"""Iceberg's defaults: rows of a page at most, and the codec, if a table's properties set neither."""
_SUMMARY = "snapshot-property."
"""The prefix of writer options that become entries of the snapshot's summary."""
_SESSION = (
    "spark.wap.id",
    "spark.wap.branch",
    "spark.sql.iceberg.compression-codec",
    "spark.sql.iceberg.compression-level",
    "spark.sql.iceberg.compression-strategy",
)
"""Session settings that change Iceberg's writer, or the target of its commits."""
_SNAPSHOTS = "spark.sql.iceberg.snapshot-property."
"""The prefix of session settings that become entries of each snapshot's summary."""
_CODEC, _PAGE_ROWS = "write.parquet.compression-codec", "write.parquet.page-row-limit"
_BLOOM = "write.parquet.bloom-filter-enabled.column."
_HEEDED = (
    "write.format.default",
    _CODEC,
    _PAGE_ROWS,
    _BLOOM,
    # these apply to metadata, which Iceberg's library itself writes
    "write.metadata.",
    "write.manifest",
    "write.summary.",
    # these apply to DELETE, UPDATE and MERGE
    "write.delete.",
    "write.update.",
    "write.merge.",
    # our writes switch these off
    "write.distribution-mode",
    "write.target-file-size-bytes",
)
"""Prefixes of properties under which this process writes the same files as Iceberg's own writer."""


@dataclass(frozen=True)
class IcebergTarget:
    """An Iceberg table that receives files.

    Attributes:
        spark: the session.
        name: the name of the table.
        table: the table of Iceberg's library after the commit.
        summary: the entries for the snapshot's summary.
        finish: a function that publishes a created or replaced table; None for an existing table.
        before: the snapshot whose files are all replaced, with the same rows; None if the files are added.
        parts: the names of its partition columns.
        replaces_parts: whether the files replace all other files of their partitions.
    """

    spark: SparkSession
    name: TableName
    table: Any
    summary: Mapping[str, str]
    finish: Callable[[], None] | None = None
    before: str | None = None
    parts: Sequence[str] = ()
    replaces_parts: bool = False

    @cached_property
    def folder(self) -> str:
        """The folder of its files."""
        return str(self.table.locationProvider().newDataLocation("any")).rpartition("/")[0]

    def writer(self, columns: t.StructType, blooms: Collection[str]) -> ArrowWriter | str:
        """Return a writer that produces Iceberg's own files, or a short reason why only Iceberg can.

        Args:
            columns: the columns of the files.
            blooms: the names of columns with a bloom filter.
        """
        missing = missing_feature(blooms)
        if missing:
            return missing
        for name in _SESSION:
            if self.spark.conf.get(name, None) is not None:
                return f"{name} is set"
        if first_below(self.spark, [_SNAPSHOTS]):
            return f"{_SNAPSHOTS}* is set"
        why = why_not_partitioned(columns, self.parts, self._kept_parts())
        if why:
            return why
        if on_disk(self.spark, self.folder) is None:
            return "it lies elsewhere than on this machine"
        properties = self.table.properties()
        given = {str(name): str(properties.get(name)) for name in items(properties.keySet())}
        unheeded = sorted(
            name for name in given if name.startswith(("write.", "encryption.")) and not name.startswith(_HEEDED)
        )
        if unheeded:
            return f"{unheeded[0]} is for Iceberg's own writer"
        codec = given.get(_CODEC, _OLDEST_CODEC).lower()
        if codec not in CODECS or codec == "none" or given.get("write.format.default", "parquet").lower() != "parquet":
            return f"its files are {given.get('write.format.default', 'parquet')}, compressed by {codec}"
        filter_rows = {name.removeprefix(_BLOOM) for name in given if name.startswith(_BLOOM)}
        if filter_rows != {*blooms} or any(given[_BLOOM + name].lower() != "true" for name in filter_rows):
            return "it has bloom filters of its own"
        page_rows = parse_page_rows(given.get(_PAGE_ROWS, _PAGE))
        schema = str(class_named(jvm_of(self.spark), "org.apache.iceberg.SchemaParser").toJson(self.table.schema()))
        numbers = field_numbers(json.loads(schema), columns)
        if numbers is None or page_rows is None:
            return "its columns are not the query's"
        entries = {"iceberg.schema": schema, VERSION_KEY: footer_entries(self.spark, columns)[VERSION_KEY]}
        return ArrowWriter(codec, page_rows, entries, threads_of(self.spark), tuple(blooms), numbers, bool(self.parts))

    def path_of(self, below: str) -> str:
        """Return the path of a file in ``folder`` as the table spells it."""
        return f"{self.folder}/{below}"

    def describe_files(self, files: Sequence[WrittenFile]) -> list[Any]:
        """Return files in the form that ``commit`` expects."""
        metrics = FileMetrics(self.spark, self.table)
        with ThreadPoolExecutor(threads_of(self.spark)) as pool:  # the JVM opens each file, so threads overlap
            return [*pool.map(metrics.data_file, files)]

    def commit(self, files: Sequence[Any]) -> None:
        """Commit files, in the form of ``describe_files``, to the table.

        Raises:
            Exception: Iceberg rejected the commit.
        """
        if self.replaces_parts:
            update = self.table.newReplacePartitions()
            add = update.addFile
        elif self.finish is None and self.before is None:
            update = self.table.newAppend()
            add = update.appendFile
        else:  # as Spark's own REPLACE TABLE AS SELECT does (SPARK-51936)
            everything = class_named(jvm_of(self.spark), "org.apache.iceberg.expressions.Expressions").alwaysTrue()
            update = self.table.newOverwrite().overwriteByRowFilter(everything)
            add = update.addFile
        if self.before is not None:  # Iceberg rejects the commit after a concurrent insert or delete
            update.validateFromSnapshot(int(self.before)).validateNoConflictingData().validateNoConflictingDeletes()
        for file in files:
            add(file)
        for name, value in {"spark.app.id": self.spark.sparkContext.applicationId, **self.summary}.items():
            update.set(name, value)
        update.commit()
        if self.finish is not None:
            self.finish()

    def _kept_parts(self) -> list[str]:
        """Return the partition fields of the table: column names, or texts of other transforms."""
        schema = self.table.schema()
        return [
            str(schema.findColumnName(field.sourceId())) if field.transform().isIdentity() else str(field)
            for field in items(self.table.spec().fields())
        ]

    def is_refused(self, exc: BaseException) -> bool:
        """Return whether an error of ``commit`` proves that the table has none of the files.

        Iceberg's own writer uses the same mark. Any other error may have come after the commit.
        """
        return is_error_of(jvm_of(self.spark), exc, "org.apache.iceberg.exceptions.CleanableFailure")


def staged_iceberg(
    spark: SparkSession,
    table: TableName,
    schema: t.StructType,
    parts: Sequence[str],
    properties: Mapping[str, str],
    options: Mapping[str, str],
) -> IcebergTarget | str:
    """Return the table to create or replace as a target of files, or a short reason why only Spark can.

    Args:
        spark: the session.
        table: the name of the table.
        schema: the schema of its rows; every column may be NULL.
        parts: the names of its partition columns.
        properties: the properties of the table, ``location`` among them if one is given.
        options: the writer options.
    """
    summary = _summary(options)
    if summary is None:
        return "there are options for Iceberg's own writer"
    jvm: Any = jvm_of(spark)
    session: Any = spark._jsparkSession
    catalog = session.sessionState().catalogManager().catalog(_CATALOG)
    if str(catalog.getClass().getName()) != ICEBERG_CATALOG:  # a subclass may drop a table instead of staging it
        return f"its catalog is a {catalog.getClass().getName()}"
    if not catalog.useNullableQuerySchema():
        return "its catalog keeps NOT NULL"
    context: Any = spark.sparkContext
    new_array = context._gateway.new_array
    identifier = catalog_identifier(spark, table.schema, table.identifier)
    columns = nullable_type(jvm, schema)
    given = class_named(jvm, "java.util.HashMap")()
    owner = class_named(jvm, "org.apache.spark.util.Utils").getCurrentUserName()
    for key, value in {"provider": "iceberg", "owner": str(owner), **properties}.items():
        given.put(key, value)
    transforms = new_array(class_named(jvm, "org.apache.spark.sql.connector.expressions.Transform"), len(parts))
    of_column = class_named(jvm, "org.apache.spark.sql.connector.expressions.Expressions").identity
    for place, name in enumerate(parts):
        transforms[place] = of_column(quote_name(name))
    found = catalog.stageCreateOrReplace(identifier, columns, transforms, given)
    return IcebergTarget(spark, table, found.table(), summary, found.commitStagedChanges, parts=parts)


def existing_iceberg(
    spark: SparkSession,
    table: TableName,
    parts: Sequence[str],
    options: Mapping[str, str],
    before: str | None = None,
    kept: Any = None,
    *,
    replaces_parts: bool = False,
) -> IcebergTarget | str:
    """Return an existing table as a target of files, or a short reason why only Spark can write them.

    Args:
        spark: the session.
        table: the name of the table.
        parts: the names of its partition columns.
        options: the writer options.
        before: the snapshot whose files are all replaced, with the same rows; None if the files are added.
        kept: the table of Iceberg's library, if it was just loaded; None to load it now.
        replaces_parts: whether the files replace all other files of their partitions.
    """
    summary = _summary(options)
    if summary is None:
        return "there are options for Iceberg's own writer"
    kept = kept or iceberg_table(spark, table)
    return IcebergTarget(spark, table, kept, summary, None, before, parts, replaces_parts)


def _summary(options: Mapping[str, str]) -> dict[str, str] | None:
    """Return the snapshot summary in the writer options; None if they contain anything else."""
    if any(not name.startswith(_SUMMARY) for name in options):
        return None
    return {name.removeprefix(_SUMMARY): value for name, value in options.items()}
