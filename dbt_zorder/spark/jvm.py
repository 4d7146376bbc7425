"""Access the JVM of a session in this process, and its classes."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, cast

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType


def has_jvm(spark: SparkSession) -> bool:
    """Return whether a session's JVM is in this process: not over Spark Connect."""
    return getattr(spark, "_jvm", None) is not None


def jvm_of(spark: SparkSession) -> Any:
    """Return the JVM of a session; None if it is not in this process.

    Classes of Spark and of the formats use the settings of the session that is active in the calling thread. A session
    that has only run SQL, such as dbt's, is not active, and these classes would use defaults. So this function
    activates the session, as PySpark's ``createDataFrame`` does.
    """
    jvm = getattr(spark, "_jvm", None)
    if jvm is not None:
        session: Any = spark._jsparkSession
        session.setActiveSession(session)
    return jvm


_THREAD = threading.local()


def send_at_once(spark: SparkSession) -> None:
    """Let the JVM send its answers to this thread without delay.

    Py4J sends a text in pieces of 8 kB. TCP holds back the second piece until the first is confirmed, which the other
    end delays by 40 ms (Nagle, RFC 896). The text of a plan is longer than one piece.
    """
    gateway: Any = cast("Any", spark.sparkContext)._gateway
    if getattr(_THREAD, "gateway", None) is gateway:
        return
    _THREAD.gateway = gateway
    with contextlib.suppress(Exception):  # a gateway of another kind is slower, and works
        client = gateway.java_gateway_server.getCallbackClient()
        client.getPerThreadConnection().getSocket().setTcpNoDelay(True)


def sql_parser(spark: SparkSession) -> Any:
    """Return the session's SQL parser with its extensions; None if its JVM is not in this process."""
    if jvm_of(spark) is None:
        return None
    session: Any = spark._jsparkSession
    return session.sessionState().sqlParser()


@contextlib.contextmanager
def active(spark: SparkSession) -> Iterator[None]:
    """Make a session the active one of this thread in the JVM while the block runs; does nothing over Spark Connect.

    PySpark 3.5 parses an expression given as text by the settings of the active session, or by defaults if none is
    active. It ignores the settings of the DataFrame that the expression is for.
    """
    if not has_jvm(spark):
        yield
        return
    send_at_once(spark)
    session: Any = spark._jsparkSession
    before = session.getActiveSession()
    session.setActiveSession(session)
    try:
        yield
    finally:
        if before.isDefined():
            session.setActiveSession(before.get())
        else:
            session.clearActiveSession()


@lru_cache(maxsize=256)
def class_named(jvm: Any, name: str) -> Any:
    """Return a Java class by its full name; the cache saves one JVM call for each part of the name.

    A build opens dozens of files, and every pruned read inspects a folder.
    """
    found = jvm
    for part in name.split("."):
        found = getattr(found, part)
    return found


def items(collection: Any) -> Iterator[Any]:
    """Yield the items of a Scala or Java collection; pass ``keySet()`` for the keys of a map.

    Py4J's own iterators end with an error of the JVM, and PySpark needs about 10 ms to convert it.
    """
    iterator = collection.iterator()
    while iterator.hasNext():
        yield iterator.next()


def frame_of_plan(spark: SparkSession, plan: Any) -> DataFrame:
    """Return the rows of a plan of the JVM; a command runs at once."""
    package = "org.apache.spark.sql" + ("" if spark.version.startswith("3.") else ".classic")
    session: Any = spark._jsparkSession
    return DataFrame(class_named(jvm_of(spark), f"{package}.Dataset").ofRows(session, plan), spark)


def table_identifier(jvm: Any, schema: str, identifier: str) -> Any:
    """Return a table's name as the object that Spark's own catalog and Delta's log expect."""
    schema_of = class_named(jvm, "scala.Some")(schema)
    return class_named(jvm, "org.apache.spark.sql.catalyst.TableIdentifier")(identifier, schema_of)


def catalog_identifier(spark: SparkSession, schema: str, identifier: str) -> Any:
    """Return a table's name as the object that a format's catalog expects."""
    jvm, context = jvm_of(spark), cast("Any", spark.sparkContext)
    namespace = context._gateway.new_array(class_named(jvm, "java.lang.String"), 1)
    namespace[0] = schema
    return class_named(jvm, "org.apache.spark.sql.connector.catalog.Identifier").of(namespace, identifier)


def nullable_type(jvm: Any, schema: StructType) -> Any:
    """Return columns as a type of the JVM, with all of them and their nested fields nullable."""
    return class_named(jvm, "org.apache.spark.sql.types.DataType").fromJson(schema.json()).asNullable()


def is_error_of(jvm: Any, exc: BaseException, name: str) -> bool:
    """Return whether an error came from the JVM and is of a class, or a subclass of it, that a package provides."""
    error = getattr(exc, "java_exception", None)
    if error is None:
        return False
    loader = class_named(jvm, "java.lang.Thread").currentThread().getContextClassLoader()
    return bool(class_named(jvm, "java.lang.Class").forName(name, False, loader).isInstance(error))
