"""Files that this process writes for a Delta table, and the commit by which the table gets them.

Delta's own transaction is what its Spark writer commits by, too: it looks for conflicts, writes the log and its
checkpoints. What that writer does before, to fit rows to a table, is not done here: a table that asks for it is left
to it.
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
from dbt_zorder.tables.delta.metadata import columns_kept, metadata_of, protocol_of, says_more
from dbt_zorder.tables.delta.properties import DELTA_DEFAULT, DELTA_INDEXED, DELTA_STATS, is_named, leaves
from dbt_zorder.tables.delta.statistics import add_action
from dbt_zorder.tables.delta.transaction import DELTA, Replaces, begin, commit
from dbt_zorder.tables.lakehouse.written_file import WrittenFile, why_not_parted

_FEATURES = {"appendOnly", "invariants", "timestampNtz", "deletionVectors", "v2Checkpoint", "vacuumProtocolCheck"}
"""Features that ask nothing of who adds files to a table."""
PLAIN_WRITER = 2
"""The version of writers up to which a table has none but those."""
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
"""Properties, or what they begin with, that ask nothing of who adds files, or that are heeded here."""
_PASSED_ON = ("delta.", "parquet.", "fs.", "dfs.", "io.", "hadoop.", "mapreduce.")
"""What properties begin with that Delta, or the writer of Parquet to which it gives them, may heed."""
_SESSION = (
    "spark.databricks.delta.properties.defaults.",
    "spark.databricks.delta.write.",
    "spark.databricks.delta.stats.",
    "spark.databricks.delta.autoCompact.",
    "spark.databricks.delta.history.",
    "spark.databricks.io.skipping.",
)
"""What settings of a session begin with by which Delta's writer does otherwise than is done here."""
_MOST_REPLACED = 2000
"""Files that are removed one by one, a millisecond each."""
NOTE, COMMENT, LOCATION = "userMetadata", "comment", "location"
NOT_KEPT = (COMMENT, LOCATION)
"""What is given among a table's properties, and is none."""


@dataclass(frozen=True)
class DeltaFiles:
    """A Delta table that is to get files.

    Attributes:
        spark: the session.
        name: of the table.
        folder: where its files go.
        metadata: what it is, as its log has it.
        protocol: what it asks of readers and writers.
        parts: names of the columns that it is to be parted by.
        note: what the commit is to say.
        replaces: what of the table they take the place of.
        before: the version that they are to replace; None if that is whatever there is.
        begun: the transaction that they are committed by, where it heeds what others commit while they are written.
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
        """Return what writes its files as Delta would write them; or in a few words why only Delta can.

        Args:
            columns: of the files.
            blooms: names of columns with a bloom filter, of which Delta writes none.
        """
        why = self._why_not()
        if why:
            return why
        if columns_kept(columns) != self.metadata["schemaString"]:
            return "its columns are not the query's, or have more to say than a comment"
        why = why_not_parted(columns, self.parts, self.metadata["partitionColumns"])
        return why or arrow_writer(self.spark, without(columns, self.parts), {}, self.folder)

    def path_of(self, below: str) -> str:
        """Return the path of a file in ``folder`` as the log has it ("Add File": encoded as a URI).

        Java's own spelling, as Delta's writer has it: VACUUM compares names as they are spelled, and by any other it
        deletes a file of the table.
        """
        path = class_named(jvm_of(self.spark), "org.apache.hadoop.fs.Path")(below)
        return f"{self.folder}/{path.toUri().toString()}"

    def described(self, files: Sequence[WrittenFile]) -> list[str]:
        """Return files as the table takes them."""
        indexed = self._indexed
        return [add_action(one, one.path[len(self.folder) + 1 :], self.parts, indexed) for one in files]

    def commit(self, files: Sequence[str]) -> None:
        """Let the table have files, as ``described`` gives them.

        Raises:
            BuildError: the table is another one by now.
            Exception: Delta refused.
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
        """Tell whether an error of ``commit`` means for sure that the table has none of the files."""
        error = f"{DELTA}.DeltaConcurrentModificationException"
        return isinstance(exc, BuildError) or is_error_of(jvm_of(self.spark), exc, error)

    def _why_not(self) -> str:
        """Return in a few words what of the table or the session only Delta's own writer heeds."""
        features = {*self.protocol.get("readerFeatures", ()), *self.protocol.get("writerFeatures", ())}
        if features - _FEATURES:
            return f"it has the feature {min(features - _FEATURES)}"
        if not features and self.protocol["minWriterVersion"] > PLAIN_WRITER:
            return f"it asks for writers of version {self.protocol['minWriterVersion']}"
        kept = self.metadata["configuration"]
        unheeded = sorted(name for name in kept if name.lower().startswith(_PASSED_ON) and not name.startswith(_HEEDED))
        if unheeded:
            return f"{unheeded[0]} is for Delta's own writer"
        if says_more(self.metadata["schemaString"]):
            return "its log says more of a column than a comment"
        heeded = first_below(self.spark, _SESSION)
        return f"{heeded}* is set" if heeded else ""

    @property
    def _indexed(self) -> list[Any]:
        """Leaves that the table keeps statistics of."""
        schema = columns_from_json(self.metadata["schemaString"], str(self.name))
        found, kept = leaves(without(schema, self.parts)), self.metadata["configuration"]
        if DELTA_STATS in kept:
            named = {name.strip().replace("`", "").lower() for name in kept[DELTA_STATS].split(",")}
            return [one for one in found if is_named(one, named)]
        count = int(kept.get(DELTA_INDEXED, DELTA_DEFAULT))
        return found if count < 0 else found[:count]


def standing_delta(
    spark: SparkSession,
    table: TableName,
    parts: Sequence[str],
    told: Mapping[str, str],
    replaces: Replaces = Replaces.NOTHING,
    snapshot: Any = None,
) -> DeltaFiles | str:
    """Return a table that is there, which is to get files; or in a few words why only Spark can do that.

    Args:
        spark: the session.
        table: its name.
        parts: names of the columns that it is to be parted by.
        told: options of the writer.
        replaces: what of it the files take the place of.
        snapshot: of the version that is to be told of; None for that of now.
    """
    if {*told} - {NOTE}:
        return "there are options for Delta's own writer"
    snapshot = snapshot or delta_state(spark, table).snapshot
    if replaces is not Replaces.NOTHING and (why := _too_many(snapshot)):
        return why
    begun = None
    if replaces is Replaces.PARTITIONS:
        # from now on, as Spark's own overwrite: of rows that others add meanwhile, Delta decides
        begun = begin(spark, table)
        snapshot = begun.snapshot()
    folder, what = str(snapshot.path().getParent().toString()), (metadata_of(snapshot), protocol_of(snapshot))
    return DeltaFiles(spark, table, folder, *what, parts, told.get(NOTE, ""), replaces, begun=begun)


def replaced_delta(
    spark: SparkSession,
    table: TableName,
    parts: Sequence[str],
    properties: Mapping[str, str],
    told: Mapping[str, str],
    before: str | None = None,
) -> DeltaFiles | str:
    """Return the same of a table whose rows are replaced, and which is to be by these properties: no other one.

    Args:
        spark: the session.
        table: its name.
        parts: names of the columns that it is to be parted by.
        properties: of the table, its comment and place among them.
        told: options of the writer.
        before: the version whose rows are in the query; None if they need not be.
    """
    found = standing_delta(spark, table, parts, told, Replaces.ALL)
    if isinstance(found, str):
        return found
    wanted = {name: value for name, value in properties.items() if name not in NOT_KEPT}
    now = (found.metadata["configuration"], found.metadata.get("description") or "")
    if now != (wanted, properties.get(COMMENT, "")):
        return "its properties change"
    return replace(found, before=before)


def _too_many(snapshot: Any) -> str:
    """Return in a few words why only Delta can replace files of a version, an empty text if this process can."""
    # the log has to be put together for it, half a second, which an overwrite does anyway
    files = int(snapshot.numOfFiles())
    return f"it has {files} files, which Delta itself removes sooner" if files > _MOST_REPLACED else ""
