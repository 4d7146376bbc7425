from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.engine.local.spool.spool import spool_rows
from dbt_zorder.engine.local.spool.spoolable import can_spool, survives_parquet
from tests.support import settings


def test_only_a_session_on_this_machine_alone_copies(spark: SparkSession) -> None:
    assert can_spool(spark)
    context = type("Context", (), {"isLocal": lambda _: False})()
    cluster = type("Session", (), {"_jsc": type("Java", (), {"sc": lambda _: context})()})
    assert not can_spool(cluster())
    assert not can_spool(type("Connect", (), {})())
    for setting in (
        {"spark.sql.sources.commitProtocolClass": "org.apache.spark.internal.io.HadoopMapReduceCommitProtocol"},
        {"parquet.encryption.footer.key": "k"},
    ):
        with settings(spark, setting):
            assert not can_spool(spark)


INT96 = {"spark.sql.parquet.outputTimestampType": "INT96"}
REBASE = "spark.sql.parquet.int96RebaseModeInWrite"


@pytest.mark.parametrize(
    ("conf", "date", "moment"),
    [
        ({}, True, True),
        ({"spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY"}, False, False),
        ({"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MILLIS"}, True, False),
        ({**INT96, REBASE: "CORRECTED"}, True, True),
        ({**INT96, REBASE: "EXCEPTION"}, True, False),
    ],
)
def test_dates_and_moments_come_back_where_the_session_writes_them_so(
    spark: SparkSession, conf: dict[str, str], *, date: bool, moment: bool
) -> None:
    one = "TIMESTAMP'0001-01-01 00:00:00.123456'"
    with settings(spark, conf):
        dates, moments = spark.sql("SELECT array(DATE'0001-01-01') AS v"), spark.sql(f"SELECT {one} AS v, 1 AS a")
        assert (survives_parquet(dates), survives_parquet(moments)) == (date, moment)
        assert survives_parquet(moments, [moments.schema["a"]])
        for frame, comes_back in ((dates, date), (moments, moment)):
            if comes_back:
                with spool_rows(frame) as copy:
                    assert copy is not None
                    texts = [rows.selectExpr("string(v)").collect() for rows in (copy.rows, frame)]
                    assert texts[0] == texts[1]
