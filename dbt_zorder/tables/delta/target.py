"""Write files of a Delta table in this process, and commit them.

The commit is Delta's own transaction, as in its Spark writer: it detects conflicts and writes the log and its
checkpoints. Delta's writer also adapts rows to a table before the write. This process does not, and leaves a table
that needs it to Delta's writer.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import types as t

from dbt_zorder.engine.parquet.writer import ArrowWriter, arrow_writer
from dbt_zorder.errors import BuildError
from dbt_zorder.spark.catalog import TableName
from dbt_zorder.spark.columns import without
from dbt_zorder.spark.conf import first_below
from dbt_zorder.spark.jvm import class_named, is_error_of, jvm_of
from dbt_zorder.spark.type_json import columns_from_json
from dbt_zorder.stats.delta.log import delta_state
from dbt_zorder.tables.delta.metadata import has_extra_metadata, metadata_of, protocol_of, stored_schema
from dbt_zorder.tables.delta.properties import DELTA_DEFAULT, DELTA_INDEXED, DELTA_STATS, is_named, leaves
from dbt_zorder.tables.delta.statistics import add_action
from dbt_zorder.tables.delta.transaction import DELTA, Replaces, begin, commit
from dbt_zorder.tables.lakehouse.written_file import WrittenFile, why_not_partitioned

_FEATURES = {"appendOnly", "invariants", "timestampNtz", "deletionVectors", "v2Checkpoint", "vacuumProtocolCheck"}
"""Table features that require nothing of a writer that only adds files."""
PLAIN_WRITER = 2
"""The highest writer version without other features."""
_HEEDED = (
    DELTA_STATS,
    DELTA_INDEXED,
    "delta.logRetentionDuration",
    "delta.deletedFileRetentionDuration",
    "delta.checkpoint",
    "delta.enableExpiredLogCleanup",
    "delta.enableDeletionVectors",
    "delta.autoOptimize.optimizeWrite",
    "delta.tuneFileSizesForRewrites",
    "delta.targetFileSize",
    "delta.setTransactionRetentionDuration",
    "delta.minReaderVersion",
    "delta.minWriterVersion",
    "delta.feature.",
)
"""Prefixes of properties that need nothing from a writer that adds files, or that this module implements."""
_PASSED_ON = ("delta.", "parquet.", "fs.", "dfs.", "io.", "hadoop.", "mapreduce.")
"""Prefixes of properties that Delta, or its Parquet writer, may apply."""
_SESSION = (
    "spark.databricks.delta.properties.defaults.",
    "spark.databricks.delta.write.",
    "spark.databricks.delta.stats.",
    "spark.databricks.delta.autoCompact.",
    "spark.databricks.delta.history.",
    "spark.databricks.io.skipping.",
)
"""Prefixes of session settings that change the behaviour of Delta's writer."""
_MOST_REPLACED = 2000
"""The most files removed one by one; each lasts a millisecond."""
NOTE, COMMENT, LOCATION = "userMetadata", "comment", "location"
NOT_KEPT = (COMMENT, LOCATION)
"""Entries of the given properties that are not table properties."""


@dataclass(frozen=True)
class DeltaTarget:
    """A Delta table that receives files.

    Attributes:
        spark: the session.
        name: the name of the table.
        folder: the folder of its files.
        metadata: its metadata action.
        protocol: its protocol action.
        parts: the names of its partition columns.
        note: the note of the commit.
        replaces: the part of the table that the files replace.
        before: the version to replace; None to replace any version.
        begun: the open transaction, if it must detect commits during the write of the files.
    """

    spark: SparkSession
    name: TableName
    folder: str
    metadata: Mapping[str, Any]
    protocol: Mapping[str, Any]
    parts: Sequence[str]
    note: str
    replaces: Replaces
    before: str | None = None
    begun: Any = None

    def writer(self, columns: t.StructType, blooms: Collection[str]) -> ArrowWriter | str:
        """Return a writer that produces Delta's own files, or a short reason why only Delta can.

        Args:
            columns: the columns of the files.
            blooms: the names of columns with a bloom filter; Delta writes none.
        """
        why = self._why_not()
        if why:
            return why
        if stored_schema(columns) != self.metadata["schemaString"]:
            return "its columns are not the query's, or have more to say than a comment"
        why = why_not_partitioned(columns, self.parts, self.metadata["partitionColumns"])
        return why or arrow_writer(self.spark, without(columns, self.parts), {}, self.folder)

    def path_of(self, below: str) -> str:
        """Return the path of a file in ``folder`` as the log has it ("Add File": encoded as a URI).

        It is Java's own spelling, as in Delta's writer. VACUUM compares names by spelling, and would delete a file of
        the table that is spelled otherwise.
        """
        path = class_named(jvm_of(self.spark), "org.apache.hadoop.fs.Path")(below)
        return f"{self.folder}/{path.toUri().toString()}"

    def describe_files(self, files: Sequence[WrittenFile]) -> list[str]:
        """Return files in the form that ``commit`` expects."""
        indexed = self._indexed
        return [add_action(one, one.path[len(self.folder) + 1 :], self.parts, indexed) for one in files]

    def commit(self, files: Sequence[str]) -> None:
        """Commit files, in the form of ``describe_files``, to the table.

        Raises:
            BuildError: another run changed the table.
            Exception: Delta rejected the commit.
        """
        transaction = self.begun or begin(self.spark, self.name)
        snapshot = transaction.snapshot()
        now = (metadata_of(snapshot), protocol_of(snapshot), str(snapshot.version()))
        if now != (self.metadata, self.protocol, now[2] if self.before is None else self.before):
            msg = (
                f"Another run changed {self.name} while this one wrote its files; it is as that left it. Run it again."
            )
            raise BuildError(msg)
        commit(self.spark, transaction, files, self.replaces, self.note)

    def is_refused(self, exc: BaseException) -> bool:
        """Return whether an error of ``commit`` proves that the table has none of the files."""
        error = f"{DELTA}.DeltaConcurrentModificationException"
        return isinstance(exc, BuildError) or is_error_of(jvm_of(self.spark), exc, error)

    def _why_not(self) -> str:
        """Return a short reason if the table or the session needs Delta's own writer."""
        features = {*self.protocol.get("readerFeatures", ()), *self.protocol.get("writerFeatures", ())}
        if features - _FEATURES:
            return f"it has the feature {min(features - _FEATURES)}"
        if not features and self.protocol["minWriterVersion"] > PLAIN_WRITER:
            return f"it asks for writers of version {self.protocol['minWriterVersion']}"
        kept = self.metadata["configuration"]
        unheeded = sorted(name for name in kept if name.lower().startswith(_PASSED_ON) and not name.startswith(_HEEDED))
        if unheeded:
            return f"{unheeded[0]} is for Delta's own writer"
        if has_extra_metadata(self.metadata["schemaString"]):
            return "its log says more of a column than a comment"
        heeded = first_below(self.spark, _SESSION)
        return f"{heeded}* is set" if heeded else ""

    @property
    def _indexed(self) -> list[Any]:
        """The leaves for which the table keeps statistics."""
        schema = columns_from_json(self.metadata["schemaString"], str(self.name))
        found, kept = leaves(without(schema, self.parts)), self.metadata["configuration"]
        if DELTA_STATS in kept:
            named = {name.strip().replace("`", "").lower() for name in kept[DELTA_STATS].split(",")}
            return [one for one in found if is_named(one, named)]
        count = int(kept.get(DELTA_INDEXED, DELTA_DEFAULT))
        return found if count < 0 else found[:count]


def existing_delta(
    spark: SparkSession,
    table: TableName,
    parts: Sequence[str],
    options: Mapping[str, str],
    replaces: Replaces = Replaces.NOTHING,
    snapshot: Any = None,
) -> DeltaTarget | str:
    """Return an existing table as a target of files, or a short reason why only Spark can write them.

    Args:
        spark: the session.
        table: the name of the table.
        parts: the names of its partition columns.
        options: the writer options.
        replaces: the part of the table that the files replace.
        snapshot: the snapshot of the table; None to read the latest.
    """
    if {*options} - {NOTE}:
        return "there are options for Delta's own writer"
    snapshot = snapshot or delta_state(spark, table).snapshot
    if replaces is not Replaces.NOTHING and (why := _too_many(snapshot)):
        return why
    begun = None
    if replaces is Replaces.PARTITIONS:
        # the transaction starts now, as in Spark's own overwrite: Delta judges concurrent commits
        begun = begin(spark, table)
        snapshot = begun.snapshot()
    folder, what = str(snapshot.path().getParent().toString()), (metadata_of(snapshot), protocol_of(snapshot))
    return DeltaTarget(spark, table, folder, *what, parts, options.get(NOTE, ""), replaces, begun=begun)


def replaced_delta(
    spark: SparkSession,
    table: TableName,
    parts: Sequence[str],
    properties: Mapping[str, str],
    options: Mapping[str, str],
    before: str | None = None,
) -> DeltaTarget | str:
    """Return the target for a table whose rows are all replaced; the properties must already be these.

    Args:
        spark: the session.
        table: the name of the table.
        parts: the names of its partition columns.
        properties: the properties of the table, comment and location among them.
        options: the writer options.
        before: the version whose rows are in the query; None if the query need not contain them.
    """
    found = existing_delta(spark, table, parts, options, Replaces.ALL)
    if isinstance(found, str):
        return found
    wanted = {name: value for name, value in properties.items() if name not in NOT_KEPT}
    now = (found.metadata["configuration"], found.metadata.get("description") or "")
    if now != (wanted, properties.get(COMMENT, "")):
        return "its properties change"
    return replace(found, before=before)


def _too_many(snapshot: Any) -> str:
    """Return a short reason why only Delta can replace a version's files; an empty text if this process can."""
    # the count reconstructs the snapshot, half a second, which an overwrite needs anyway
    files = int(snapshot.numOfFiles())
    return f"it has {files} files, which Delta itself removes sooner" if files > _MOST_REPLACED else ""
