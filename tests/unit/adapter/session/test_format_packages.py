from __future__ import annotations

import pytest

from dbt_zorder.adapter.session.format_packages import PACKAGES, format_settings
from dbt_zorder.errors import ConfigError

DELTA = "io.delta.sql.DeltaSparkSessionExtension"


def test_a_format_is_set_up_by_its_name() -> None:
    found = format_settings(["delta"], {"spark.master": "local[2]"}, "4.1.4")
    assert found["spark.jars.packages"] == PACKAGES["delta"]["4.1"]
    assert found["spark.sql.extensions"] == DELTA
    assert found["spark.sql.catalog.spark_catalog"].endswith("DeltaCatalog")
    assert found["spark.master"] == "local[2]"


def test_what_the_user_sets_stays() -> None:
    user = {
        "spark.jars.packages": "org.x:x:1",
        "spark.sql.extensions": f"org.x.X,{DELTA}",
        "spark.sql.catalog.spark_catalog": "org.x.Catalog",
    }
    found = format_settings(["delta"], user, "3.5.9")
    assert found["spark.jars.packages"] == f"org.x:x:1,{PACKAGES['delta']['3.5']}"
    assert found["spark.sql.extensions"] == f"org.x.X,{DELTA}"
    assert found["spark.sql.catalog.spark_catalog"] == "org.x.Catalog"


@pytest.mark.parametrize("key", ["spark.jars.packages", "spark.jars"])
def test_a_package_of_the_users_own_is_taken(key: str) -> None:
    assert format_settings(["delta"], {key: "io.delta:delta-spark_2.13:9"}, "9.9")[key] == "io.delta:delta-spark_2.13:9"


def test_iceberg_shares_an_embedded_metastore_or_goes_to_the_users() -> None:
    key = "spark.hadoop.iceberg.engine.hive.lock-enabled"
    assert format_settings(["iceberg"], {}, "4.0.2")[key] == "false"
    assert key not in format_settings(["iceberg"], {"spark.hadoop.hive.metastore.uris": "thrift://h:9083"}, "4.0.2")


def test_no_format_is_no_change() -> None:
    assert format_settings([], {"a": "b"}, "4.1.4") == {"a": "b"}


@pytest.mark.parametrize(
    ("formats", "version", "message"),
    [
        (["detla"], "4.1.4", "zorder_formats has 'detla', but only 'delta', 'iceberg' can be set up. Did you mean"),
        (["delta", "iceberg"], "4.1.4", "use one target of the profile for each"),
        (
            ["delta"],
            "4.3.0",
            "this version of dbt-zorder has no release of delta that fits PySpark 4.3.0: install pyspark 3.5,",
        ),
    ],
)
def test_what_cannot_be_set_up_is_one_sentence(formats: list[str], version: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        format_settings(formats, {}, version)
    assert message in str(caught.value)


def test_what_sparks_own_files_tell_counts_too() -> None:
    files = {"spark.jars.packages": "org.x:x:1", "spark.hadoop.hive.metastore.uris": "thrift://h:9083", "spark.a": "b"}
    found = format_settings(["iceberg"], {}, "4.0.2", files)
    assert found["spark.jars.packages"] == f"org.x:x:1,{PACKAGES['iceberg']['4.0']}"
    assert "spark.hadoop.iceberg.engine.hive.lock-enabled" not in found
    assert "spark.a" not in found
    by_hive = {"spark.hive.metastore.uris": "thrift://h:9083"}
    assert "spark.hadoop.iceberg.engine.hive.lock-enabled" not in format_settings(["iceberg"], by_hive, "4.0.2")
    template = {"spark.hadoop.hive.metastore.uris": ""}
    assert "spark.hadoop.iceberg.engine.hive.lock-enabled" in format_settings(["iceberg"], {}, "4.0.2", template)
    own = {"spark.jars": "/x/delta-spark.jar", "spark.sql.catalog.spark_catalog": "org.x.Catalog"}
    assert format_settings(["delta"], {}, "9.9", own)["spark.sql.catalog.spark_catalog"] == "org.x.Catalog"
