"""The contenders of each session, each with its defaults and with its best settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from bench.contenders import ORDER, SNAPPY, Contender, Folder, OrderBy, Ours, Task
from bench.lakes import DeltaRs, Hudi, Lake, OrderedFormat

SESSIONS = ("parquet", "delta", "iceberg", "delta-rs", "hudi")
HUDI = {
    "spark.jars.packages": "org.apache.hudi:hudi-spark3.5-bundle_2.12:1.0.2",
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
    "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
}
"""Hudi has no release for the newest Spark; its session runs on 3.5, by an interpreter that is named for it."""

SIZED = {"spark.databricks.delta.optimize.maxFileSize": "{size}"}
SORTED = {**SIZED, "spark.databricks.io.skipping.mdc.sortWithinFiles": "true"}
EVEN = {**SIZED, "spark.databricks.io.skipping.mdc.rangeId.max": "1024"}
"""A key is cut into 1,000 ranges by default; a power of two lets the curve's halves be halves of the rows."""


def contenders(session: str, task: Task) -> list[Contender]:
    """Return who takes part in a session; the first one is what the others are compared with."""
    found: Mapping[str, Callable[[], list[Contender]]] = {
        "parquet": lambda: [Folder(task, "plain copy"), Ours(task, "dbt-zorder")],
        "delta": lambda: [
            OrderedFormat(task, "ORDER BY into Delta", "delta"),
            Ours(task, "dbt-zorder on Delta", "delta"),
            Lake(task, "Delta OPTIMIZE ZORDER BY", "delta", settings=SIZED),
            Lake(task, "Delta ZORDER BY, sorted within files", "delta", settings=SORTED),
            Lake(task, "Delta ZORDER BY, sorted, 1,024 ranges", "delta", settings={**SORTED, **EVEN}),
            Lake(task, "Delta liquid clustering", "delta", settings=SIZED, liquid=True),
            Lake(task, "Delta liquid clustering, 1,024 ranges", "delta", settings=EVEN, liquid=True),
            Lake(task, "Delta OPTIMIZE ZORDER BY, defaults", "delta"),
        ],
        "iceberg": lambda: [
            OrderedFormat(task, "ORDER BY into Iceberg", "iceberg", SNAPPY),
            Ours(task, "dbt-zorder on Iceberg", "iceberg"),
            Lake(task, "Iceberg rewrite_data_files zorder", "iceberg", SNAPPY, {"target-file-size-bytes": "{size}"}),
            Lake(task, "Iceberg zorder, defaults", "iceberg"),
        ],
        "hudi": lambda: [
            Ours(task, "dbt-zorder on PySpark 3.5"),
            Hudi(task, "Hudi clustering, z-order, direct"),
            Hudi(task, "Hudi clustering, z-order, sample", method="sample"),
            Hudi(task, "Hudi clustering, hilbert, direct", curve="hilbert"),
            Hudi(task, "Hudi clustering, hilbert, sample", curve="hilbert", method="sample"),
            Hudi(task, "Hudi, hilbert, sample, with its index", curve="hilbert", method="sample", indexed=True),
        ],
        "delta-rs": lambda: [DeltaRs(task, "delta-rs z_order")],
    }
    return [OrderBy(task, ORDER), *found[session]()] if session != "delta-rs" else found[session]()
