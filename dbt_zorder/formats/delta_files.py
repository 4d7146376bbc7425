"""Files that this process writes for a Delta table, and the commit by which the table gets them.

Delta's own transaction is what its Spark writer commits by, too: it looks for conflicts, writes the log and its
checkpoints. What that writer does before, to fit rows to a table, is not done here: a table that asks for it is left
to it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import types as t

from dbt_zorder.catalog import TableName, schema_location
from dbt_zorder.errors import BuildError
from dbt_zorder.formats.delta_metadata import columns_kept, metadata_of, protocol_of, says_more
from dbt_zorder.formats.delta_metrics import add_actions
from dbt_zorder.formats.properties import DELTA_DEFAULT, DELTA_INDEXED, DELTA_STATS, is_named, leaves
from dbt_zorder.jvm import class_named, is_error_of, items, jvm_of, table_identifier
from dbt_zorder.table.arrow_files import ArrowWriter, arrow_writer
from dbt_zorder.table.files import exists

_DELTA = "org.apache.spark.sql.delta"
_FEATURES = {"appendOnly", "invariants", "timestampNtz", "deletionVectors", "v2Checkpoint", "vacuumProtocolCheck"}
"""Features that ask nothing of who adds files to a table."""
_PLAIN_WRITER = 2
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
_NOTE, _COMMENT, _LOCATION = "userMetadata", "comment", "location"
_NOT_KEPT = (_COMMENT, _LOCATION)
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
        files: how many it has.
        note: what the commit is to say.
        replaces: the files take the place of all that the table has.
        before: the version that they are to replace; None if that is whatever there is.
    """

    spark: SparkSession
    name: TableName
    folder: str
    metadata: Mapping[str, Any]
    protocol: Mapping[str, Any]
    files: int
    note: str
    replaces: bool
    before: str | None = None

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
        return arrow_writer(self.spark, columns, {}, self.folder)

    def described(self, sizes: Mapping[str, int], rows: int) -> list[str]:
        """Return files as the table takes them.

        Args:
            sizes: bytes of each by its path in ``folder``.
            rows: that they have together.

        Raises:
            BuildError: they have more or fewer.
        """
        return list(add_actions(self.spark, str(self.name), sizes, rows, self._indexed))

    def commit(self, files: Sequence[str]) -> None:
        """Let the table have files, as ``described`` gives them.

        Raises:
            BuildError: the table is another one by now.
            Exception: Delta refused.
        """
        jvm: Any = jvm_of(self.spark)
        option, to_seq = jvm.scala.Option.apply, jvm.org.apache.spark.api.python.PythonUtils.toSeq
        session: Any = self.spark._jsparkSession
        kept = session.sessionState().catalog().getTableMetadata(table_identifier(jvm, *_parts(self.name)))
        log = class_named(jvm, f"{_DELTA}.DeltaLog").forTable(session, table_identifier(jvm, *_parts(self.name)))
        transaction = log.startTransaction(option(kept), option(None))
        snapshot = transaction.snapshot()
        now = (metadata_of(snapshot), protocol_of(snapshot), str(snapshot.version()))
        if now != (self.metadata, self.protocol, now[2] if self.before is None else self.before):
            msg = (
                f"Another run changed {self.name} while this one wrote its files; it is as that left it. Run it again."
            )
            raise BuildError(msg)
        actions = jvm.java.util.ArrayList()
        if self.replaces:
            for file in items(transaction.filterFiles()):
                actions.add(file.remove())
        of_json = class_named(jvm, f"{_DELTA}.actions.Action").fromJson
        told = [json.loads(file)["add"] for file in files]
        for file in files:
            actions.add(of_json(file))
        rows = sum(json.loads(add["stats"])["numRecords"] for add in told)
        metrics = {"numFiles": len(told), "numOutputRows": rows, "numOutputBytes": sum(add["size"] for add in told)}
        transaction.registerSQLMetrics(session, self._metrics(jvm, metrics))
        transaction.commit(to_seq(actions), self._operation(jvm, option, to_seq))

    def is_refused(self, exc: BaseException) -> bool:
        """Tell whether an error of ``commit`` means for sure that the table has none of the files."""
        error = f"{_DELTA}.DeltaConcurrentModificationException"
        return isinstance(exc, BuildError) or is_error_of(jvm_of(self.spark), exc, error)

    def _why_not(self) -> str:
        """Return in a few words what of the table or the session only Delta's own writer heeds."""
        features = {*self.protocol.get("readerFeatures", ()), *self.protocol.get("writerFeatures", ())}
        if features - _FEATURES:
            return f"it has the feature {min(features - _FEATURES)}"
        if not features and self.protocol["minWriterVersion"] > _PLAIN_WRITER:
            return f"it asks for writers of version {self.protocol['minWriterVersion']}"
        kept = self.metadata["configuration"]
        unheeded = sorted(name for name in kept if name.lower().startswith(_PASSED_ON) and not name.startswith(_HEEDED))
        if unheeded:
            return f"{unheeded[0]} is for Delta's own writer"
        if self.metadata["partitionColumns"]:
            return "it is parted"
        if says_more(self.metadata["schemaString"]):
            return "its log says more of a column than a comment"
        session: Any = self.spark._jsparkSession
        lines = str(session.conf().getAll().mkString("\n")).splitlines()
        return next((f"{one}* is set" for one in _SESSION if any(line.startswith(one) for line in lines)), "")

    def _metrics(self, jvm: Any, values: Mapping[str, int]) -> Any:
        """Return metrics of the operation, which the table's history tells."""
        context: Any = self.spark.sparkContext
        made, create = jvm.java.util.HashMap(), jvm.org.apache.spark.sql.execution.metric.SQLMetrics.createMetric
        for name, value in values.items():
            metric = create(context._jsc.sc(), name)
            metric.set(value)
            made.put(name, metric)
        return jvm.org.apache.spark.api.python.PythonUtils.toScalaMap(made)

    def _operation(self, jvm: Any, option: Any, to_seq: Any) -> Any:
        """Return what the table's history is to say: a WRITE, as of Spark's own writer."""
        name = f"{_DELTA}.DeltaOperations$Write"
        loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
        count = jvm.java.lang.Class.forName(name, True, loader).getConstructors()[0].getParameterCount()
        modes = jvm.org.apache.spark.sql.SaveMode
        mode = modes.Overwrite if self.replaces else modes.Append
        no_columns, note = option(to_seq(jvm.java.util.ArrayList())), option(self.note or None)
        # by their number in this version of Delta, what follows is optional
        more = [option(None) for _ in range(count - 4)]
        return class_named(jvm, name)(mode, no_columns, option(None), note, *more)

    @property
    def _indexed(self) -> list[Any]:
        """Leaves that the table keeps statistics of."""
        schema = t.StructType.fromJson(self.metadata["schemaString"])
        found, kept = leaves(schema), self.metadata["configuration"]
        if DELTA_STATS in kept:
            named = {name.strip().replace("`", "").lower() for name in kept[DELTA_STATS].split(",")}
            return [one for one in found if is_named(one, named)]
        count = int(kept.get(DELTA_INDEXED, DELTA_DEFAULT))
        return found if count < 0 else found[:count]


def standing_delta(
    spark: SparkSession, table: TableName, told: Mapping[str, str], *, replaces: bool = False
) -> DeltaFiles | str:
    """Return a table that is there, which is to get files; or in a few words why only Spark can do that.

    Args:
        spark: the session.
        table: its name.
        told: options of the writer.
        replaces: the files take the place of all that it has.
    """
    if {*told} - {_NOTE}:
        return "there are options for Delta's own writer"
    jvm: Any = jvm_of(spark)
    found = class_named(jvm, f"{_DELTA}.DeltaLog").forTableWithSnapshot(
        spark._jsparkSession, table_identifier(jvm, *_parts(table))
    )
    log, snapshot = found._1(), found._2()
    folder, files = str(log.dataPath().toString()), int(snapshot.numOfFiles())
    return DeltaFiles(
        spark, table, folder, metadata_of(snapshot), protocol_of(snapshot), files, told.get(_NOTE, ""), replaces
    )


def replaced_delta(
    spark: SparkSession,
    table: TableName,
    properties: Mapping[str, str],
    told: Mapping[str, str],
    before: str | None = None,
) -> DeltaFiles | str:
    """Return the same of a table whose rows are replaced, and which is to be by these properties: no other one.

    Args:
        spark: the session.
        table: its name.
        properties: of the table, its comment and place among them.
        told: options of the writer.
        before: the version whose rows are in the query; None if they need not be.
    """
    found = standing_delta(spark, table, told, replaces=True)
    if isinstance(found, str):
        return found
    if found.files > _MOST_REPLACED:
        return f"it has {found.files} files, which Delta itself removes sooner"
    wanted = {name: value for name, value in properties.items() if name not in _NOT_KEPT}
    now = (found.metadata["configuration"], found.metadata.get("description") or "")
    if now != (wanted, properties.get(_COMMENT, "")):
        return "its properties change"
    return replace(found, before=before)


def new_delta(
    spark: SparkSession, table: TableName, schema: t.StructType, properties: Mapping[str, str], told: Mapping[str, str]
) -> DeltaFiles | str:
    """Return what a table is likely to be that is not there yet; its files are not put there, but into what is made.

    Args:
        spark: the session.
        table: its name.
        schema: of its rows.
        properties: of the table, its comment and place among them.
        told: options of the writer.
    """
    if {*told} - {_NOTE}:
        return "there are options for Delta's own writer"
    place = properties.get(_LOCATION)
    if not place:
        place = f"{schema_location(spark, table.schema).rstrip('/')}/{table.identifier.lower()}"
    if exists(spark, place):
        return f"there is something in {place} already"
    wanted = {name: value for name, value in properties.items() if name not in _NOT_KEPT}
    metadata = {"schemaString": columns_kept(schema), "partitionColumns": [], "configuration": wanted}
    return DeltaFiles(
        spark,
        table,
        place.rpartition("/")[0],
        metadata,
        {"minWriterVersion": _PLAIN_WRITER},
        0,
        told.get(_NOTE, ""),
        False,
    )


def delta_id(spark: SparkSession, table: TableName) -> str:
    """Return by what a table is told from another one that had or will have its name."""
    found = standing_delta(spark, table, {})
    assert not isinstance(found, str)
    return str(found.metadata["id"])


def _parts(table: TableName) -> tuple[str, str]:
    return table.schema, table.identifier
