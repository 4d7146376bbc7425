"""Commit with Delta's own transaction, as its Spark writer does: remove and add files, and write the log.

``OptimisticTransaction`` is not public. The calls used here are the same in Delta 3.3, 4.0 and 4.4, except one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

from pyspark.sql import SparkSession

from dbt_zorder.spark.catalog import TableName
from dbt_zorder.spark.jvm import class_named, items, jvm_of, table_identifier

DELTA = "org.apache.spark.sql.delta"
_UTILS = "org.apache.spark.api.python.PythonUtils"


class Replaces(Enum):
    """The part of a table that new files replace."""

    NOTHING = "nothing"
    ALL = "all"
    PARTITIONS = "the partitions that the files are of"


def begin(spark: SparkSession, table: TableName) -> Any:
    """Return a transaction on the latest version of a table; it detects every later commit."""
    jvm: Any = jvm_of(spark)
    option = class_named(jvm, "scala.Option").apply
    session: Any = spark._jsparkSession
    name = table_identifier(jvm, table.schema, table.identifier)
    kept = session.sessionState().catalog().getTableMetadata(name)
    log = class_named(jvm, f"{DELTA}.DeltaLog").forTable(session, kept)
    return log.startTransaction(option(kept), option(None))


def commit(spark: SparkSession, transaction: Any, actions: Sequence[str], replaces: Replaces, note: str) -> None:
    """Commit files to a table.

    Args:
        spark: the session.
        transaction: the transaction from ``begin``.
        actions: the ``add`` action of each file as JSON.
        replaces: the part of the table that the files replace.
        note: the note in the table's history.

    Raises:
        Exception: Delta rejected the commit.
    """
    jvm: Any = jvm_of(spark)
    to_seq = class_named(jvm, _UTILS).toSeq
    of_json = class_named(jvm, f"{DELTA}.actions.Action").fromJson
    added, all_actions = class_named(jvm, "java.util.ArrayList")(), class_named(jvm, "java.util.ArrayList")()
    for action in actions:
        added.add(of_json(action))
    adds = [json.loads(action)["add"] for action in actions]
    for file in _replaced(jvm, transaction, replaces, to_seq(added), [add["partitionValues"] for add in adds]):
        all_actions.add(file.remove())
    all_actions.addAll(added)
    metrics = {
        "numFiles": len(adds),
        "numOutputRows": sum(json.loads(add["stats"])["numRecords"] for add in adds),
        "numOutputBytes": sum(add["size"] for add in adds),
    }
    transaction.registerSQLMetrics(spark._jsparkSession, _metrics(spark, jvm, metrics))
    transaction.commit(to_seq(all_actions), _operation(jvm, to_seq, replaces, note))


def _replaced(
    jvm: Any, transaction: Any, replaces: Replaces, added: Any, partitions: Sequence[Mapping[str, str | None]]
) -> Sequence[Any]:
    """Return the files to remove."""
    if replaces is Replaces.NOTHING:
        return []
    if replaces is Replaces.ALL:
        return [*items(transaction.filterFiles())]
    try:
        return [*items(transaction.filterFiles(added))]
    except Exception as exc:
        if "Method filterFiles" not in str(exc):  # before Delta 4.1, its argument is a set of partitions
            raise
        to_seq = class_named(jvm, _UTILS).toSeq
        distinct = class_named(jvm, "java.util.ArrayList")()
        for one in {json.dumps(one, sort_keys=True): one for one in partitions}.values():
            values = class_named(jvm, "java.util.HashMap")()
            for name, text in one.items():
                values.put(name, text)
            distinct.add(class_named(jvm, _UTILS).toScalaMap(values))
        return [*items(transaction.filterFiles(to_seq(distinct).toSet()))]


def _metrics(spark: SparkSession, jvm: Any, values: Mapping[str, int]) -> Any:
    """Return metrics of the operation for the table's history."""
    context: Any = spark.sparkContext
    made = class_named(jvm, "java.util.HashMap")()
    create = class_named(jvm, "org.apache.spark.sql.execution.metric.SQLMetrics").createMetric
    for name, value in values.items():
        metric = create(context._jsc.sc(), name)
        metric.set(value)
        made.put(name, metric)
    return class_named(jvm, _UTILS).toScalaMap(made)


def _operation(jvm: Any, to_seq: Any, replaces: Replaces, note: str) -> Any:
    """Return the operation for the table's history: a WRITE, as from Spark's own writer."""
    name, option = f"{DELTA}.DeltaOperations$Write", class_named(jvm, "scala.Option").apply
    loader = class_named(jvm, "java.lang.Thread").currentThread().getContextClassLoader()
    count = class_named(jvm, "java.lang.Class").forName(name, True, loader).getConstructors()[0].getParameterCount()
    modes = class_named(jvm, "org.apache.spark.sql.SaveMode")
    mode = modes.Append if replaces is Replaces.NOTHING else modes.Overwrite
    no_columns = option(to_seq(class_named(jvm, "java.util.ArrayList")()))
    # Delta's versions differ in the number of optional parameters
    more = [option(None) for _ in range(count - 4)]
    return class_named(jvm, name)(mode, no_columns, option(None), option(note or None), *more)
