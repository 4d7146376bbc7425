"""Classes of the JVM behind a session that is in this process."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, cast

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType


def has_jvm(spark: SparkSession) -> bool:
    """Tell whether a session's JVM is in this process: not over Spark Connect."""
    return getattr(spark, "_jvm", None) is not None


def jvm_of(spark: SparkSession) -> Any:
    """Return the JVM behind a session, None where it is not in this process.

    Spark's own classes, and those of the formats, go by the settings of the session that is active in the thread that
    calls them. One that has run nothing but SQL, as those of dbt, has none active, and they would go by defaults: so
    this session is made the active one, as PySpark's ``createDataFrame`` does.
    """
    jvm = getattr(spark, "_jvm", None)
    if jvm is not None:
        session: Any = spark._jsparkSession
        session.setActiveSession(session)
    return jvm


def sql_parser(spark: SparkSession) -> Any:
    """Return the parser of a session's SQL, extensions and all; None where its JVM is not in this process."""
    if jvm_of(spark) is None:
        return None
    session: Any = spark._jsparkSession
    return session.sessionState().sqlParser()


@contextlib.contextmanager
def active(spark: SparkSession) -> Iterator[None]:
    """Let a session be the active one of this thread in the JVM for as long as the block runs; not over Spark Connect.

    PySpark 3.5 reads an expression that is given as text by the settings of whichever session is active, or by defaults
    where none is, and not by those of the DataFrame that it is for.
    """
    if not has_jvm(spark):
        yield
        return
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
    """Return a class of Hadoop's or Spark's own; the JVM is asked once for each part of its name, not at each use.

    A build opens dozens of files, and every pruned read looks at a folder.
    """
    found = jvm
    for part in name.split("."):
        found = getattr(found, part)
    return found


def items(collection: Any) -> Iterator[Any]:
    """Yield the items of a collection of Scala's or Java's, of a map its keys by ``keySet()``.

    Py4J's own iterators end by an error of the JVM, which PySpark takes some 10 ms to explain.
    """
    iterator = collection.iterator()
    while iterator.hasNext():
        yield iterator.next()


def table_identifier(jvm: Any, schema: str, identifier: str) -> Any:
    """Return a table's name as Spark's own catalog and Delta's log take it."""
    schema_of = class_named(jvm, "scala.Some")(schema)
    return class_named(jvm, "org.apache.spark.sql.catalyst.TableIdentifier")(identifier, schema_of)


def catalog_identifier(spark: SparkSession, schema: str, identifier: str) -> Any:
    """Return a table's name as a catalog that a format brings takes it."""
    jvm, context = jvm_of(spark), cast("Any", spark.sparkContext)
    namespace = context._gateway.new_array(class_named(jvm, "java.lang.String"), 1)
    namespace[0] = schema
    return class_named(jvm, "org.apache.spark.sql.connector.catalog.Identifier").of(namespace, identifier)


def nullable_type(jvm: Any, schema: StructType) -> Any:
    """Return columns as the JVM has them, all of which may be NULL, and what is in them."""
    return class_named(jvm, "org.apache.spark.sql.types.DataType").fromJson(schema.json()).asNullable()


def is_error_of(jvm: Any, exc: BaseException, name: str) -> bool:
    """Tell whether an error came from the JVM, and is of a class or of one below it, which a package brought."""
    error = getattr(exc, "java_exception", None)
    if error is None:
        return False
    loader = class_named(jvm, "java.lang.Thread").currentThread().getContextClassLoader()
    return bool(class_named(jvm, "java.lang.Class").forName(name, False, loader).isInstance(error))
