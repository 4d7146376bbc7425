from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.spark.catalog_id import SETTING, catalog_id, identity_of, is_same_catalog, was_moved
from tests.support import settings

URL, URIS, FACTORY = "javax.jdo.option.ConnectionURL", "hive.metastore.uris", "hive.metastore.client.factory.class"


def identity(**settings: str) -> str:
    names = {"url": URL, "uris": URIS, "factory": FACTORY, "region": "aws.region", "id": "aws.glue.catalog.id"}
    given = {names[key]: value for key, value in settings.items()}
    return identity_of(lambda key: given.get(key, ""), lambda path: f"/cwd/{path}" if path[0] != "/" else path)


@pytest.mark.parametrize(
    ("settings", "wanted"),
    [
        ({}, "derby:/cwd/metastore_db"),
        ({"url": "jdbc:derby:;databaseName=/a b/db;create=true"}, "derby:/a b/db"),
        ({"url": "jdbc:derby:sub/db;create=true;user=me;password=s3cret"}, "derby:/cwd/sub/db"),
        ({"url": "jdbc:derby:memory:db;create=true"}, "derby:memory"),
        ({"url": "jdbc:derby://Host:1527/db;create=true"}, "derby://host:1527/db"),
        ({"url": "jdbc:postgresql://me:s3cret@Host:5432/db?user=me&password=s3cret"}, "postgresql://host/db"),
        ({"url": "jdbc:mysql://h2:3307,h1/db"}, "mysql://h1,h2:3307/db"),
        ({"url": "jdbc:sqlserver://h;databaseName=meta;password=s3cret"}, "sqlserver://h/meta"),
        ({"uris": " thrift://B:9083, thrift://a:9084 "}, "metastore:a:9084,b"),
        ({"uris": "thrift://a", "url": "jdbc:mysql://h/db"}, "metastore:a"),
        ({"factory": "com.amazonaws.GlueFactory", "region": "eu-1", "id": "42"}, "GlueFactory:eu-1/42"),
    ],
)
def test_a_catalog_is_where_it_is_reached(settings: dict[str, str], wanted: str) -> None:
    assert identity(**settings) == wanted


@pytest.mark.parametrize(
    "url",
    [
        "jdbc:mysql://me:s3cret@h/db",
        "jdbc:mysql://me:s3cret/x@h/db",
        "jdbc:mysql://me:s3cret?x@h/db",
        "jdbc:mysql://h/db?password=s3cret@x",
        "jdbc:mysql://1:1;s3cret@h/db",
        "jdbc:oracle:thin:me/s3cret@//h:1521/svc",
        "jdbc:oracle:thin:@h:1521:s3",
        "jdbc:other",
    ],
)
def test_no_secret_is_in_it(url: str) -> None:
    found = identity(url=url)
    assert "s3cret" not in found
    assert "me" not in found.partition(":")[2]
    assert found == identity(url=url)


def test_one_host_of_a_metastore_is_enough() -> None:
    assert is_same_catalog("metastore:a,b", "metastore:b,c")
    assert not is_same_catalog("metastore:a", "metastore:c")
    assert not is_same_catalog("derby:/a", "metastore:a")


def test_an_embedded_metastore_is_its_folder_unless_a_setting_names_it(spark: SparkSession, session_dir: str) -> None:
    assert catalog_id(spark) == f"derby:{Path(session_dir).resolve() / 'metastore_db'}"
    assert not was_moved(spark)
    with settings(spark, {SETTING: "mine"}):
        assert catalog_id(spark) == "mine"
