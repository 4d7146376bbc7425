from __future__ import annotations

import traceback
from pathlib import Path

import pytest
from dbt.adapters.spark.connections import SparkConnectionMethod
from dbt_common.exceptions import DbtConfigError

from dbt_zorder.adapter.credentials import ZorderCredentials


def test_a_schema_is_all_that_a_profile_needs() -> None:
    data = {"schema": "s"}
    ZorderCredentials.validate(data)
    credentials = ZorderCredentials.from_dict(data)
    assert (credentials.type, credentials.method) == ("spark_zorder", SparkConnectionMethod.SESSION)
    assert credentials.unique_field


def test_the_session_lies_in_the_project_unless_said_otherwise() -> None:
    home = str(Path("~/spark").expanduser())
    for given, wanted in ((None, "/p/.spark_zorder"), ("here", "/p/here"), ("/abs", "/abs"), ("~/spark", home)):
        credentials = ZorderCredentials.from_dict({"schema": "s", "session_dir": given})
        credentials.resolve_session_dir("/p")
        assert credentials.session_dir == wanted


def test_debug_shows_what_counts_for_the_method() -> None:
    session = ZorderCredentials.from_dict({"schema": "s"})
    assert [key for key, _ in session.connection_info()] == ["method", "schema", "session_dir"]
    assert dict(session.connection_info())["session_dir"] == ".spark_zorder"


def test_a_server_comes_from_the_profile_or_as_pyspark_finds_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_REMOTE", raising=False)
    given = ZorderCredentials.from_dict({"schema": "s", "spark_remote": "sc://one:15002"})
    assert given.spark_remote == "sc://one:15002"
    assert [key for key, _ in given.connection_info()] == ["method", "schema", "spark_remote"]
    assert ZorderCredentials.from_dict({"schema": "s"}).spark_remote is None
    secret = ZorderCredentials.from_dict({"schema": "s", "spark_remote": "sc://one:443/;token=SECRET"})
    assert dict(secret.connection_info())["spark_remote"] == "sc://one:443/"
    monkeypatch.setenv("SPARK_REMOTE", "sc://two:15002")
    assert ZorderCredentials.from_dict({"schema": "s"}).spark_remote == "sc://two:15002"
    with pytest.raises(DbtConfigError, match="'http://x', but it must be an address like sc://localhost:15002"):
        ZorderCredentials.from_dict({"schema": "s", "spark_remote": "http://x"})


def test_server_side_parameters_may_be_numbers_and_booleans_of_yaml() -> None:
    given = {"spark.sql.shuffle.partitions": 8, "spark.sql.cbo.enabled": True, "spark.driver.memory": "2g"}
    data = {"schema": "s", "server_side_parameters": given}
    ZorderCredentials.validate(data)
    found = ZorderCredentials.from_dict(data).server_side_parameters
    assert found == {
        "spark.sql.shuffle.partitions": "8",
        "spark.sql.cbo.enabled": "true",
        "spark.driver.memory": "2g",
        "spark.sql.ansi.enabled": "false",  # by dbt-spark, whatever is asked for
    }
    with pytest.raises(DbtConfigError, match="has null as spark"):
        ZorderCredentials.from_dict({"schema": "s", "server_side_parameters": {"spark.master": None}})


def test_pruning_of_plain_sql_needs_a_session_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_REMOTE", raising=False)
    assert ZorderCredentials.from_dict({"schema": "s", "zorder_prune": True}).zorder_prune is True
    assert ZorderCredentials.from_dict({"schema": "s", "spark_remote": "sc://one:15002"}).zorder_prune == "auto"
    with pytest.raises(DbtConfigError, match="so leave it out; zorder_scan prunes there too"):
        ZorderCredentials.from_dict({"schema": "s", "zorder_prune": True, "spark_remote": "sc://one:15002"})


@pytest.mark.parametrize(
    ("given", "expected"), [("auto", "auto"), ("Auto", "auto"), ("true", True), ("False", False), (False, False)]
)
def test_pruning_of_plain_sql_is_automatic_unless_it_is_switched(given: object, expected: object) -> None:
    assert ZorderCredentials.from_dict({"schema": "s"}).zorder_prune == "auto"
    assert checked({"schema": "s", "zorder_prune": given}).zorder_prune == expected


def test_pruning_of_plain_sql_has_no_other_values() -> None:
    with pytest.raises(DbtConfigError, match="zorder_prune is 'yes', but it must be auto, true or false"):
        checked({"schema": "s", "zorder_prune": "yes"})


@pytest.mark.parametrize("formats", ["delta", ["delta"]])
def test_formats_may_be_one_name(formats: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dbt_zorder.adapter.credentials.format_settings", lambda names, *_: {"names": ",".join(names)})
    data = {"schema": "s", "zorder_formats": formats}
    ZorderCredentials.validate(data)
    assert ZorderCredentials.from_dict(data).server_side_parameters == {"names": "delta"}


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("zorder_prun", "Did you mean 'zorder_prune'"),
        ("session_dirr", "Did you mean 'session_dir'"),
        ("spark_remot", "Did you mean 'spark_remote'"),
        ("zorder_by", "is said by the model's config"),
    ],
)
def test_a_key_that_was_meant_to_be_one_of_ours_is_found(key: str, message: str) -> None:
    with pytest.raises(DbtConfigError, match=f"'{key}', which is no key of .*{message}"):
        ZorderCredentials.from_dict({"schema": "s", key: "x"})


def checked(data: dict[str, object]) -> ZorderCredentials:
    ZorderCredentials.validate(data)
    return ZorderCredentials.from_dict(data)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"server_side_parameters": {"spark.key": ["SECRET"]}}, "has a list as spark.key, but it must be a text"),
        ({"server_side_parameters": {"spark": {"key": "SECRET"}}}, "has a mapping of names to values as spark, but"),
        (
            {"server_side_parameters": "spark.key=SECRET"},
            "a text in 'server_side_parameters', but it must be a mapping",
        ),
        ({"server_side_parameters": ["SECRET"]}, "a list in 'server_side_parameters', but it must be a mapping"),
        ({"token": ["SECRET"]}, "has a list in 'token', but it must be a text or null"),
        ({"password": {"is": "SECRET"}}, "in 'password', but it must be a text or null"),
    ],
)
def test_a_value_that_may_be_a_secret_is_in_no_message(given: dict[str, object], message: str) -> None:
    with pytest.raises(DbtConfigError) as found:
        checked({"schema": "s", **given})
    assert message in str(found.value)
    assert "SECRET" not in "".join(traceback.format_exception(found.value))
