from __future__ import annotations

from pathlib import Path

import pytest

from dbt_zorder.adapter.session.environment import read_spark_files


def site(folder: Path, **properties: str) -> None:
    listed = (
        f"<property><name>{k.replace('_', '.')}</name><value> {v} </value></property>" for k, v in properties.items()
    )
    (folder / "hive-site.xml").write_text(f"<?xml version='1.0'?><configuration>{''.join(listed)}</configuration>")


def test_lines_are_read_as_spark_reads_them(conf_dir: Path) -> None:
    (conf_dir / "spark-defaults.conf").write_text(
        "# spark.a  no\n\n  spark.b   two words \nspark.c=x=y\nspark.d : z\nspark.e\ta\n"
        "spark.hive.metastore.uris thrift://h:1\n"
    )
    assert read_spark_files() == {
        "spark.b": "two words",
        "spark.c": "x=y",
        "spark.d": "z",
        "spark.e": "a",
        "spark.hadoop.hive.metastore.uris": "thrift://h:1",
    }


def test_sparks_own_file_wins_over_hives_of_which_the_first_counts(
    conf_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    site(tmp_path, a_b="hadoop", c_d="hadoop", e_f="hadoop")
    site(conf_dir, a_b="hive", c_d="hive")
    (conf_dir / "spark-defaults.conf").write_text("spark.hadoop.a.b spark")
    assert read_spark_files() == {"spark.hadoop.a.b": "spark", "spark.hadoop.c.d": "hive"}
    (conf_dir / "hive-site.xml").unlink()
    assert read_spark_files() == {
        "spark.hadoop.a.b": "spark",
        "spark.hadoop.c.d": "hadoop",
        "spark.hadoop.e.f": "hadoop",
    }


def test_what_is_not_there_or_cannot_be_read_says_nothing(conf_dir: Path) -> None:
    assert read_spark_files() == {}
    (conf_dir / "hive-site.xml").write_text("<configuration>")
    (conf_dir / "spark-defaults.conf").write_bytes(b"\xff\xfe spark")
    assert read_spark_files() == {}


def test_without_a_folder_of_its_own_sparks_home_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SPARK_CONF_DIR", "HADOOP_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text("spark.a b")
    assert read_spark_files() == {"spark.a": "b"}
