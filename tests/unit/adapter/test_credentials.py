from __future__ import annotations

from dbt.adapters.spark.connections import SparkConnectionMethod

from dbt_zorder.adapter.credentials import ZorderCredentials


def test_a_schema_is_all_that_a_profile_needs() -> None:
    data = {"schema": "s"}
    ZorderCredentials.validate(data)
    credentials = ZorderCredentials.from_dict(data)
    assert (credentials.type, credentials.method) == ("spark_zorder", SparkConnectionMethod.SESSION)
    assert credentials.unique_field


def test_the_session_lies_in_the_project_unless_said_otherwise() -> None:
    for given, wanted in ((None, "/p/.spark_zorder"), ("here", "/p/here"), ("/abs", "/abs")):
        credentials = ZorderCredentials.from_dict({"schema": "s", "session_dir": given})
        credentials.resolve_session_dir("/p")
        assert credentials.session_dir == wanted


def test_debug_shows_what_counts_for_the_method() -> None:
    session = ZorderCredentials.from_dict({"schema": "s"})
    assert [key for key, _ in session.connection_info()] == ["method", "schema", "session_dir"]


def test_server_side_parameters_are_text() -> None:
    credentials = ZorderCredentials.from_dict(
        {"schema": "s", "server_side_parameters": {"spark.sql.shuffle.partitions": 8}}
    )
    assert credentials.server_side_parameters["spark.sql.shuffle.partitions"] == "8"
