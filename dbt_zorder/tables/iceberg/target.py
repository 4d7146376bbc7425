"""Files that this process writes for an Iceberg table, and the commit by which the table gets them.

Iceberg's Java library is what its own Spark writer calls, too: a table is staged by the catalog, as for CREATE OR
REPLACE TABLE AS SELECT, its files are appended, and one commit makes both known.
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

from dbt_zorder.engine.parquet.writer import CODECS, ArrowWriter, lacks, threads_of
from dbt_zorder.layout.page_order import parse_page_rows
from dbt_zorder.spark.catalog import TableName
from dbt_zorder.spark.catalog_entry import ICEBERG_CATALOG
from dbt_zorder.spark.conf import first_below
from dbt_zorder.spark.jvm import catalog_identifier, class_named, is_error_of, items, jvm_of, nullable_type
from dbt_zorder.spark.local_disk import on_disk
from dbt_zorder.spark.sql import quote_name
from dbt_zorder.stats.arrow_store import VERSION_KEY, told_by_spark
from dbt_zorder.stats.iceberg.manifests import iceberg_table
from dbt_zorder.tables.iceberg.metrics import FileMetrics
from dbt_zorder.tables.iceberg.schema import field_numbers
from dbt_zorder.tables.lakehouse.written_file import WrittenFile, why_not_parted

_CATALOG = "spark_catalog"
_PAGE, _OLDEST_CODEC = "20000", "gzip"
"""Rows of a page at most, and the codec, of a table whose properties say nothing of them."""
_SUMMARY = "snapshot-property."
"""Prefix of writer options that are entries of the snapshot's summary."""
_SESSION = (
    "spark.wap.id",
    "spark.wap.branch",
    "spark.sql.iceberg.compression-codec",
    "spark.sql.iceberg.compression-level",
    "spark.sql.iceberg.compression-strategy",
)
"""Settings of a session that change what Iceberg's writer does, or where its commits go."""
_SNAPSHOTS = "spark.sql.iceberg.snapshot-property."
"""What settings begin with that are entries of each snapshot's summary."""
_CODEC, _PAGE_ROWS = "write.parquet.compression-codec", "write.parquet.page-row-limit"
_BLOOM = "write.parquet.bloom-filter-enabled.column."
_HEEDED = (
    "write.format.default",
    _CODEC,
    _PAGE_ROWS,
    _BLOOM,
    # of the metadata, which Iceberg's library itself makes
    "write.metadata.",
    "write.manifest",
    "write.summary.",
    # of statements that delete, update and merge
    "write.delete.",
    "write.update.",
    "write.merge.",
    # which our writes switch off
    "write.distribution-mode",
    "write.target-file-size-bytes",
)
"""Properties, or what they begin with, under which files are as Iceberg's own writer would make them."""


@dataclass(frozen=True)
class IcebergFiles:
    """An Iceberg table that is to get files.

    Attributes:
        spark: the session.
        name: of the table.
        table: of Iceberg's library, as it will be.
        summary: what its snapshot is to say.
        finish: makes the table itself known, where it is created or replaced; None where it stands.
        before: the snapshot whose rows the files are, where they replace all files of a table that stands.
        parts: names of the columns that it is to be parted by.
        replaces_parts: the files take the place of all others of the partitions that they are of.
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
        """Where its files go."""
        return str(self.table.locationProvider().newDataLocation("any")).rpartition("/")[0]

    def writer(self, columns: t.StructType, blooms: Collection[str]) -> ArrowWriter | str:
        """Return what writes its files as Iceberg would write them; or in a few words why only Iceberg can.

        Args:
            columns: of the files.
            blooms: names of columns with a bloom filter.
        """
        missing = lacks(blooms)
        if missing:
            return missing
        for name in _SESSION:
            if self.spark.conf.get(name, None) is not None:
                return f"{name} is set"
        if first_below(self.spark, [_SNAPSHOTS]):
            return f"{_SNAPSHOTS}* is set"
        why = why_not_parted(columns, self.parts, self._kept_parts())
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
        filtered = {name.removeprefix(_BLOOM) for name in given if name.startswith(_BLOOM)}
        if filtered != {*blooms} or any(given[_BLOOM + name].lower() != "true" for name in filtered):
            return "it has bloom filters of its own"
        page_rows = parse_page_rows(given.get(_PAGE_ROWS, _PAGE))
        schema = str(class_named(jvm_of(self.spark), "org.apache.iceberg.SchemaParser").toJson(self.table.schema()))
        numbers = field_numbers(json.loads(schema), columns)
        if numbers is None or page_rows is None:
            return "its columns are not the query's"
        told = {"iceberg.schema": schema, VERSION_KEY: told_by_spark(self.spark, columns)[VERSION_KEY]}
        return ArrowWriter(codec, page_rows, told, threads_of(self.spark), tuple(blooms), numbers, bool(self.parts))

    def path_of(self, below: str) -> str:
        """Return the path of a file in ``folder`` as the table spells it."""
        return f"{self.folder}/{below}"

    def described(self, files: Sequence[WrittenFile]) -> list[Any]:
        """Return files as the table takes them."""
        metrics = FileMetrics(self.spark, self.table)
        with ThreadPoolExecutor(threads_of(self.spark)) as pool:  # the JVM opens each
            return [*pool.map(metrics.data_file, files)]

    def commit(self, files: Sequence[Any]) -> None:
        """Let the table have files, as ``described`` gives them.

        Raises:
            Exception: Iceberg refused.
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
        if self.before is not None:  # Iceberg refuses the commit if anything was added or deleted since
            update.validateFromSnapshot(int(self.before)).validateNoConflictingData().validateNoConflictingDeletes()
        for file in files:
            add(file)
        for name, value in {"spark.app.id": self.spark.sparkContext.applicationId, **self.summary}.items():
            update.set(name, value)
        update.commit()
        if self.finish is not None:
            self.finish()

    def _kept_parts(self) -> list[str]:
        """Return what the table is parted by: names of columns, or whatever else is made of them."""
        schema = self.table.schema()
        return [
            str(schema.findColumnName(field.sourceId())) if field.transform().isIdentity() else str(field)
            for field in items(self.table.spec().fields())
        ]

    def is_refused(self, exc: BaseException) -> bool:
        """Tell whether an error of ``commit`` means for sure that the table has none of the files.

        Iceberg's own writer goes by the same mark: any other error may have come once the commit was there.
        """
        return is_error_of(jvm_of(self.spark), exc, "org.apache.iceberg.exceptions.CleanableFailure")


def staged_files(
    spark: SparkSession,
    table: TableName,
    schema: t.StructType,
    parts: Sequence[str],
    properties: Mapping[str, str],
    told: Mapping[str, str],
) -> IcebergFiles | str:
    """Return a table that is to be created, or replaced, as it will be; or in a few words why only Spark can do that.

    Args:
        spark: the session.
        table: its name.
        schema: of its rows; all of it may be NULL.
        parts: names of the columns that it is to be parted by.
        properties: of the table, its ``location`` among them where it is given one.
        told: options of the writer.
    """
    summary = _summary(told)
    if summary is None:
        return "there are options for Iceberg's own writer"
    jvm: Any = jvm_of(spark)
    session: Any = spark._jsparkSession
    catalog = session.sessionState().catalogManager().catalog(_CATALOG)
    if str(catalog.getClass().getName()) != ICEBERG_CATALOG:  # one made of it may drop a table that it is to stage
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
    return IcebergFiles(spark, table, found.table(), summary, found.commitStagedChanges, parts=parts)


def standing_files(
    spark: SparkSession,
    table: TableName,
    parts: Sequence[str],
    told: Mapping[str, str],
    before: str | None = None,
    kept: Any = None,
    *,
    replaces_parts: bool = False,
) -> IcebergFiles | str:
    """Return a table that is there, which is to get files; or in a few words why only Spark can do that.

    Args:
        spark: the session.
        table: its name.
        parts: names of the columns that it is to be parted by.
        told: options of the writer.
        before: the snapshot whose rows these files have, which take the place of all; None if they are added.
        kept: the table of Iceberg's library as it was last looked at; None for that of now.
        replaces_parts: they take the place of all others of the partitions that they are of.
    """
    summary = _summary(told)
    if summary is None:
        return "there are options for Iceberg's own writer"
    kept = kept or iceberg_table(spark, table)
    return IcebergFiles(spark, table, kept, summary, None, before, parts, replaces_parts)


def _summary(told: Mapping[str, str]) -> dict[str, str] | None:
    """Return what options say that a snapshot is to tell, None if they say anything else."""
    if any(not name.startswith(_SUMMARY) for name in told):
        return None
    return {name.removeprefix(_SUMMARY): value for name, value in told.items()}
