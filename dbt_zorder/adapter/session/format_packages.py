"""Spark settings and packages for the file formats in the profile's ``zorder_formats``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from dbt_zorder.adapter.session.environment import hadoop_name
from dbt_zorder.errors import ConfigError, did_you_mean
from dbt_zorder.stats.table_state import FORMATS

PACKAGES: Mapping[str, Mapping[str, str]] = {
    "delta": {
        "3.5": "io.delta:delta-spark_2.12:3.3.3",
        "4.0": "io.delta:delta-spark_2.13:4.0.1",
        "4.1": "io.delta:delta-spark_4.1_2.13:4.4.0",
    },
    "iceberg": {
        "3.5": "org.apache.iceberg:iceberg-spark-runtime-3.5_2.12:1.10.1",
        "4.0": "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.11.0",
        "4.1": "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
    },
}
"""Maven coordinates of the package that Spark downloads, by format and minor version of PySpark."""

_RUNTIMES = {"delta": ("delta-spark", "delta-core"), "iceberg": ("iceberg-spark-runtime",)}
_LISTS = ("spark.jars.packages", "spark.sql.extensions")
_SETTINGS: Mapping[str, Mapping[str, str]] = {
    "delta": {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        # by default 50 tasks read a table's log, and each takes longer to start than to run
        "spark.databricks.delta.snapshotPartitions": "4",
    },
    "iceberg": {
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.spark_catalog": "org.apache.iceberg.spark.SparkSessionCatalog",
        "spark.sql.catalog.spark_catalog.type": "hive",
    },
}
_EMBEDDED_ICEBERG = {
    # Iceberg opens the metastore with its own client, and PySpark ships no connection pool for that client
    "spark.hadoop.datanucleus.connectionPoolingType": "none",
    # the metastore has no lock tables; PySpark's Hive 2.3.10 commits by compare-and-set (HIVE-26882)
    "spark.hadoop.iceberg.engine.hive.lock-enabled": "false",
}
"""Settings that Iceberg needs for a metastore that the session opens itself."""


_NOTHING: Mapping[str, str] = {}


def format_settings(
    formats: Sequence[str], user: Mapping[str, str], version: str, files: Mapping[str, str] = _NOTHING
) -> dict[str, str]:
    """Return the session's settings with those that a format needs. The user's own settings stay.

    Args:
        formats: names of formats; at most one, from ``FORMATS``.
        user: the profile's ``server_side_parameters``.
        version: version of PySpark, such as ``4.1.4``.
        files: settings from Spark's own files (``session.environment``), which a setting of the session overrides.

    Raises:
        ConfigError: a format is unknown, there is more than one, or no release fits this PySpark.
    """
    for name in formats:
        if name not in FORMATS:
            msg = (
                f"zorder_formats has {name!r}, but only {', '.join(map(repr, FORMATS))} can be set up."
                f"{did_you_mean(str(name), FORMATS)}"
            )
            raise ConfigError(msg)
    if len(set(formats)) > 1:
        msg = (
            "zorder_formats has both 'delta' and 'iceberg', and each of them wants to be Spark's catalog: use one "
            "target of the profile for each."
        )
        raise ConfigError(msg)
    settings, configured = dict(user), {**files, **user, **{hadoop_name(key): value for key, value in user.items()}}
    for name in dict.fromkeys(formats):
        needed = {**_SETTINGS[name], **_package(name, configured, version)}
        if name == "iceberg" and not configured.get("spark.hadoop.hive.metastore.uris"):
            needed |= _EMBEDDED_ICEBERG
        for key, value in needed.items():
            given = [part for part in (configured.get(key) or "").split(",") if part] if key in _LISTS else []
            settings[key] = ",".join(dict.fromkeys([*given, value])) if key in _LISTS else configured.get(key, value)
    return settings


def _package(name: str, user: Mapping[str, str], version: str) -> dict[str, str]:
    if any(part in f"{user.get('spark.jars.packages', '')},{user.get('spark.jars', '')}" for part in _RUNTIMES[name]):
        return {}  # the user's settings already name a package
    minor = ".".join(re.findall(r"\d+", version)[:2])
    if minor not in PACKAGES[name]:
        supported = ", ".join(PACKAGES[name])
        msg = (
            f"zorder_formats: this version of dbt-zorder has no release of {name} that fits PySpark {version}: "
            f"install pyspark {supported}, or name a package yourself by spark.jars.packages in server_side_parameters."
        )
        raise ConfigError(msg)
    return {"spark.jars.packages": PACKAGES[name][minor]}
