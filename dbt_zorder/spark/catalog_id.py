"""Identify a session's catalog: a copy of a catalog gets another identity, and no two catalogs share one."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from hashlib import blake2b
from typing import Any
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession

from dbt_zorder.spark.catalog_entry import DELTA_CATALOG, ICEBERG_CATALOG
from dbt_zorder.spark.jvm import class_named, has_jvm, jvm_of
from dbt_zorder.spark.location import is_same_place
from dbt_zorder.spark.sql import quote_name

SETTING = "spark.zorder.catalogId"
"""Setting that names a session's catalog, for a catalog that is reached in several ways."""

_URL = "javax.jdo.option.ConnectionURL"
_URIS = "hive.metastore.uris"
_FACTORY = "hive.metastore.client.factory.class"
_USUAL_FACTORY = "SessionHiveMetaStoreClientFactory"
_METASTORE, _DERBY = "metastore:", "derby:"
_PORTS = {"metastore": 9083, "mysql": 3306, "mariadb": 3306, "postgresql": 5432, "sqlserver": 1433, "oracle": 1521}
_DATABASE = re.compile(
    r"(?:[a-z]+:)?(?:[^@/?;]*@)?(?://)?(?:[^@/?;]*@)?(?P<hosts>[\w.-]+(?::\d+)?(?:,[\w.-]+(?::\d+)?)*)"
    r"(?:[/:](?P<name>[\w.$-]*))?(?:[?;][^@]*)?"
)
"""Rest of a URL after ``jdbc:postgresql:`` and the like; a text in any other form may contain a secret anywhere."""

_derived: WeakKeyDictionary[SparkSession, str] = WeakKeyDictionary()


def catalog_id(spark: SparkSession) -> str:
    """Return the identity of a session's catalog, without secrets; empty if a Spark Connect server does not show it.

    The setting ``spark.zorder.catalogId`` comes first. Else the identity is the catalog's location: the folder of an
    embedded metastore, the hosts of a metastore server, or host and name of a database.
    """
    return str(spark.conf.get(SETTING, None) or "").strip() or _by_place(spark)


def _by_place(spark: SparkSession) -> str:
    if spark not in _derived:
        _derived[spark] = _here(spark) if has_jvm(spark) else _afar(spark)
    return _derived[spark]


def is_same_catalog(one: str, other: str) -> bool:
    """Return whether two identities belong to one catalog; metastores need only one host in common."""
    if one.startswith(_METASTORE) and other.startswith(_METASTORE):
        hosts = [set(identity.removeprefix(_METASTORE).split(",")) for identity in (one, other)]
        return not hosts[0].isdisjoint(hosts[1])
    return one == other


def was_moved(spark: SparkSession) -> bool:
    """Return whether an embedded metastore was moved or copied: its first schema is not in the warehouse folder.

    A warehouse setting that was changed by hand gives the same result.
    """
    if not _by_place(spark).startswith(_DERBY):
        return False
    first = str(spark.catalog.getDatabase(quote_name("default")).locationUri)
    return not is_same_place(first, str(spark.conf.get("spark.sql.warehouse.dir")))


def _here(spark: SparkSession) -> str:
    """Return the identity of the catalog of a session in this process."""
    jvm, session = jvm_of(spark), spark._jsparkSession
    another = str(spark.conf.get("spark.sql.catalog.spark_catalog", None) or "builtin")
    if another not in ("builtin", DELTA_CATALOG, ICEBERG_CATALOG):
        uri = str(spark.conf.get("spark.sql.catalog.spark_catalog.uri", None) or "")
        return f"{another.rpartition('.')[2]}:{','.join(_hosts(uri, 0))}"
    external = session.sharedState().externalCatalog().unwrapped()
    kind = str(external.getClass().getSimpleName())
    if kind == "InMemoryCatalog":
        return f"memory:{spark.sparkContext.applicationId}"
    if kind != "HiveExternalCatalog":
        return kind
    client = external.client()

    def setting(key: str) -> str:
        return str(client.getConf(key, "") or "")

    def whole(path: str) -> str:
        system = class_named(jvm, "java.lang.System")
        return os.path.realpath(
            os.path.join(system.getProperty("derby.system.home") or system.getProperty("user.dir"), path)
        )

    found = identity_of(setting, whole)
    return found if found != f"{_DERBY}memory" else f"memory:{spark.sparkContext.applicationId}"


def _afar(spark: SparkSession) -> str:
    """Return the identity of a Spark Connect server's catalog, as far as its settings show it."""

    def setting(key: str) -> str:
        names = (f"spark.hadoop.{key}", f"spark.{key}", key)
        return next((str(value) for name in names if (value := spark.conf.get(name, None))), "")

    try:
        if not any(map(setting, (_URL, _URIS, _FACTORY))):
            return ""
        return identity_of(setting, os.path.normpath)
    except Exception:  # a server that shows no settings
        return ""


def identity_of(setting: Callable[[str], str], whole: Callable[[str], str]) -> str:
    """Return the identity of a Hive catalog.

    Args:
        setting: function from a key to the value in Hive's client; an empty string if the key is not set.
        whole: function from Derby's folder to its real path.
    """
    factory = setting(_FACTORY).rpartition(".")[2]
    if factory and factory != _USUAL_FACTORY:
        region = setting("aws.region") or os.environ.get("AWS_REGION", "")
        account = setting("hive.metastore.glue.catalogid") or setting("aws.glue.catalog.id")
        return f"{factory}:{region}/{account}"
    uris = setting(_URIS)
    if uris.strip():
        return _METASTORE + ",".join(_hosts(uris, _PORTS["metastore"]))
    return _of_database(setting(_URL) or "jdbc:derby:metastore_db", whole)


def _hosts(uris: str, default: int) -> list[str]:
    """Return host and port of each URI, without the default port."""
    found = set()
    for uri in uris.split(","):
        text = uri.strip()
        parts: Any = urlsplit(text if "://" in text else f"//{text}")
        found.add(_host((parts.hostname or "").lower(), parts.port, default))
    return sorted(found - {""})


def _host(host: str, port: int | None, default: int | None) -> str:
    return host if port in (None, default) else f"{host}:{port}"


def _of_database(url: str, whole: Callable[[str], str]) -> str:
    kind, _, rest = url.removeprefix("jdbc:").partition(":")
    kind = kind.lower()
    if kind == "derby" and not rest.startswith("//"):
        head, *attributes = rest.split(";")
        named = dict(attribute.partition("=")[::2] for attribute in attributes)
        path = head or next((value for key, value in named.items() if key.lower() == "databasename"), "")
        if path.startswith("memory:"):
            return f"{_DERBY}memory"
        return _DERBY + whole(path.removeprefix("directory:") or "metastore_db")
    match = _DATABASE.fullmatch(rest)
    if match is None:
        return f"{kind}:{blake2b(url.encode(), digest_size=8).hexdigest()}"
    named = dict(part.partition("=")[::2] for part in re.split(r"[?;&]", rest)[1:])
    name = match["name"] or next((value for key, value in named.items() if key.lower() == "databasename"), "")
    hosts = []
    for text in match["hosts"].lower().split(","):
        host, _, port = text.partition(":")
        hosts.append(_host(host, int(port) if port else None, _PORTS.get(kind)))
    return f"{kind}://{','.join(sorted(hosts))}/{name}"
