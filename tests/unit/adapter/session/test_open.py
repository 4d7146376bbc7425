from __future__ import annotations

import os
import shlex
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.adapter.session import open as module
from dbt_zorder.adapter.session.first_target import FirstTarget
from dbt_zorder.adapter.session.open import (
    _RETRIES,
    LAYOUT_SETTINGS,
    METASTORE,
    SessionError,
    _choose_python,
    _start_error,
    _warn_of_metastore,
    open_session,
    session_settings,
)


def test_metastore_and_warehouse_lie_in_the_sessions_folder() -> None:
    settings = session_settings({}, "/p/.spark_zorder")
    assert settings["spark.sql.warehouse.dir"] == "/p/.spark_zorder/warehouse"
    assert (
        "databaseName=/p/.spark_zorder/metastore_db;create=true"
        in settings["spark.hadoop.javax.jdo.option.ConnectionURL"]
    )
    assert "-Dderby.stream.error.file=/p/.spark_zorder/derby.log" in settings["spark.driver.extraJavaOptions"]


@pytest.mark.parametrize("key", [*LAYOUT_SETTINGS, "spark.app.name", "spark.driver.memory", "spark.sql.warehouse.dir"])
def test_the_users_settings_win(key: str) -> None:
    assert session_settings({key: "mine"}, "/p")[key] == "mine"


@pytest.mark.parametrize("key", [key for key in (*LAYOUT_SETTINGS, _RETRIES) if key.startswith("spark.hadoop.hive.")])
def test_settings_of_hive_win_by_either_name(key: str, conf_dir: Path) -> None:
    other = key.replace("spark.hadoop.", "spark.")
    settings = session_settings({other: "mine"}, "/p")
    assert key not in settings
    assert settings[other] == "mine"


def test_how_often_hive_tries_is_left_to_its_own_file(conf_dir: Path) -> None:
    assert session_settings({}, "/p")[_RETRIES] == "100ms"
    name = _RETRIES.removeprefix("spark.hadoop.")
    site = f"<configuration><property><name>{name}</name><value>500ms</value></property></configuration>"
    (conf_dir / "hive-site.xml").write_text(site)
    assert _RETRIES not in session_settings({}, "/p")


def test_what_sparks_own_files_tell_is_left_to_them(conf_dir: Path) -> None:
    lines = ["spark.driver.memory 7g", "spark.app.name=mine", "spark.driver.extraJavaOptions -Da=b", "spark.x y"]
    (conf_dir / "spark-defaults.conf").write_text("\n".join([*lines, "spark.sql.parquet.outputTimestampType INT96"]))
    settings = session_settings({}, "/p")
    assert not {"spark.driver.memory", "spark.app.name", "spark.x"} & settings.keys()
    assert settings["spark.driver.extraJavaOptions"].endswith(" -Da=b")
    assert settings["spark.sql.parquet.outputTimestampType"] == "TIMESTAMP_MICROS"
    assert settings["spark.sql.warehouse.dir"] == "/p/warehouse"
    assert session_settings({"spark.app.name": "yours"}, "/p")["spark.app.name"] == "yours"


def test_a_collector_that_is_chosen_elsewhere_is_the_only_one(conf_dir: Path) -> None:
    key = "spark.driver.defaultJavaOptions"
    chosen = "-XX:+UseG1GC -Dlog4j2.configurationFile=x"
    (conf_dir / "spark-defaults.conf").write_text(f"{key} {chosen}")
    for settings in (session_settings({}, "/p"), session_settings({key: chosen}, "/p")):
        assert not any(word in settings["spark.driver.extraJavaOptions"] for word in ("GC", "log4j"))


@pytest.mark.parametrize(
    ("name", "left_out"),
    [("hive.metastore.warehouse.dir", "spark.sql.warehouse.dir"), ("javax.jdo.option.ConnectionURL", METASTORE)],
)
def test_where_hive_says_that_tables_are_they_stay(conf_dir: Path, name: str, left_out: str) -> None:
    there = {"spark.sql.warehouse.dir", METASTORE}
    (conf_dir / "hive-site.xml").write_text(
        f"<configuration><property><name>{name}</name><value>there</value></property></configuration>"
    )
    assert there & session_settings({}, "/p").keys() == there - {left_out}


def test_a_metastore_of_a_plain_session_is_spoken_of_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    own = str(tmp_path / ".spark_zorder")
    _warn_of_metastore(session_settings({}, own), own)
    assert not caplog.records
    (tmp_path / "metastore_db").mkdir()
    _warn_of_metastore(session_settings({METASTORE: "jdbc:derby:;databaseName=metastore_db"}, own), own)
    assert not caplog.records
    _warn_of_metastore(session_settings({}, own), own)
    assert f"databaseName={tmp_path}/metastore_db" in caplog.text
    caplog.clear()
    (tmp_path / ".spark_zorder").mkdir()
    _warn_of_metastore(session_settings({}, own), own)
    assert not caplog.records


def test_folders_are_listed_by_few_tasks_on_one_machine(conf_dir: Path) -> None:
    key = "spark.sql.sources.parallelPartitionDiscovery.parallelism"
    assert 16 <= int(session_settings({}, "/p")[key]) < 1000
    assert session_settings({"spark.master": "local[2]", key: "3"}, "/p")[key] == "3"
    assert key not in session_settings({"spark.master": "spark://there:7077"}, "/p")
    (conf_dir / "spark-defaults.conf").write_text(f"{key} 7\n")
    assert key not in session_settings({}, "/p"), "Spark reads it from its own file"


def test_layout_settings_are_there_by_default() -> None:
    settings = session_settings({"spark.master": "local[1]"}, "/p")
    assert {key: settings[key] for key in LAYOUT_SETTINGS} == LAYOUT_SETTINGS
    assert settings["spark.master"] == "local[1]"


@pytest.mark.parametrize("folder", ["/p/my shop", "/p/it's", '/p/"quoted" \\ back'])
def test_a_folder_of_any_name_is_one_option_of_java(folder: str) -> None:
    text = session_settings({}, folder)["spark.driver.extraJavaOptions"]
    assert shlex.split(text)[0] == f"-Dderby.stream.error.file={folder}/derby.log"


def test_java_options_of_the_user_are_added_to() -> None:
    options = session_settings({"spark.driver.extraJavaOptions": "-Dmine=1 -Dlog4j2.configurationFile=x"}, "/p")
    text = options["spark.driver.extraJavaOptions"]
    assert text.startswith("-Dderby")
    assert text.endswith("-Dmine=1 -Dlog4j2.configurationFile=x")
    assert text.count("-Dlog4j") == 1


def test_a_process_has_one_session_whose_settings_stay(spark: SparkSession) -> None:
    again = open_session({"spark.sql.shuffle.partitions": "77"}, "/elsewhere")
    assert again is spark
    assert spark.conf.get("spark.sql.shuffle.partitions") != "77"
    assert {key: spark.conf.get(key) for key in LAYOUT_SETTINGS if "hadoop" not in key} == {
        key: value for key, value in LAYOUT_SETTINGS.items() if "hadoop" not in key
    }


def test_a_session_that_was_made_in_another_thread_is_taken_as_it_is(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_opened", {})
    monkeypatch.setattr(module, "_start", lambda *_: pytest.fail("another one was opened"))
    with ThreadPoolExecutor(1) as threads:
        assert threads.submit(open_session, {}, "/elsewhere").result() is spark


def test_a_second_target_in_one_process_is_spoken_of(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "_opened", {None: spark})
    monkeypatch.setattr(module, "_first", FirstTarget("/here", {}, {}))
    assert open_session({}, "/new") is spark
    # dbt's own log, where a run before has set it up, repeats what ours says
    (record,) = (record for record in caplog.records if record.name == "dbt_zorder")
    assert "with metastore and warehouse in /here: what was to be in /new is" in record.getMessage()


def test_servers_have_sessions_of_their_own_and_none_beside_one_in_the_process(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Remote:
        """Stands for a session of Spark Connect, which this process cannot have beside its own."""

        stop = staticmethod(lambda: None)

    monkeypatch.setattr(module, "connect", lambda *_: Remote())
    left = set[object]()
    monkeypatch.setattr(module, "is_lost", lambda _, session: session in left)
    monkeypatch.setattr(module, "_users_session", lambda: None)
    monkeypatch.setattr(module, "_opened", {})
    first, second = (open_session({}, "/p", f"sc://{host}/;token=SECRET") for host in "ab")
    assert first is not second
    assert open_session({}, "/p", "sc://a/;token=SECRET") is first
    with pytest.raises(SessionError, match="of Spark Connect, sc://a/, and") as caught:
        open_session({}, "/p")
    assert "SECRET" not in str(caught.value)
    left.add(first)
    assert open_session({}, "/p", "sc://a/;token=SECRET") is not first, "its server was started anew"


@pytest.mark.parametrize("is_ours", [True, False])
def test_a_server_is_not_mistaken_for_the_session_in_the_process(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, *, is_ours: bool
) -> None:
    monkeypatch.setattr(module, "_opened", {None: spark} if is_ours else {})
    monkeypatch.setattr(module, "connect", lambda *_: pytest.fail("PySpark would mix the two"))
    with pytest.raises(SessionError, match="in which Spark itself runs"):
        open_session({}, "/p", "sc://a")


@pytest.mark.parametrize(
    ("user", "given", "wanted"),
    [({}, None, sys.executable), ({"spark.master": "local[4]"}, None, sys.executable), ({}, "/my/python", "/my/python"),
     ({"spark.master": "spark://host:7077"}, None, None)],
)  # fmt: skip
def test_workers_on_this_machine_are_of_dbts_own_python(
    monkeypatch: pytest.MonkeyPatch, user: dict[str, str], given: str | None, wanted: str | None
) -> None:
    environ = {} if given is None else {"PYSPARK_PYTHON": given}
    monkeypatch.setattr(os, "environ", environ)
    _choose_python(user)
    assert environ.get("PYSPARK_PYTHON") == wanted


def test_sparks_own_reason_is_told() -> None:
    said = (
        "An error occurred while calling None.org.apache.spark.api.java.JavaSparkContext.\n"
        ": org.apache.spark.SparkException: Could not parse Master URL: 'spak://h:7077'\n\tat org.x.Y(Z.scala:1)"
    )
    assert str(_start_error(Exception(said), "/p")).startswith(
        "Spark did not start: Could not parse Master URL: 'spak://h:7077'. Look at server_side_parameters"
    )


def test_a_metastore_in_use_is_told_though_hive_says_so_far_below() -> None:
    error = Exception("Unable to instantiate SessionHiveMetaStoreClient")
    error._stackTrace = "Caused by: ERROR XSDB6: Another instance of Derby may have booted"  # type: ignore[attr-defined]
    assert str(_start_error(error, "/p")).startswith("The metastore in /p is in use by another process")


def test_hive_does_not_pause_for_seconds_between_its_tries_in_the_embedded_metastore() -> None:
    key = "spark.hadoop.hive.hmshandler.retry.interval"
    assert session_settings({}, "/p")[key] == "100ms"
    assert session_settings({key: "1s"}, "/p")[key] == "1s"
    assert key not in session_settings({METASTORE: "jdbc:postgresql://host/hive"}, "/p")
