from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from dbt_zorder.adapter.models import microbatches as module
from dbt_zorder.adapter.models.microbatches import warn_unless_utc
from dbt_zorder.spark.conf import SESSION_ZONE
from tests.support import settings, unique


@pytest.mark.parametrize(("zone", "warned"), [("UTC", 0), ("+00:00", 0), ("Europe/Berlin", 1)])
def test_a_zone_that_is_not_utc_is_a_warning_said_once(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, zone: str, warned: int
) -> None:
    # by its own logger: dbt's, once another test has set them up, write each record to two places
    said: list[str] = []
    monkeypatch.setattr(module._LOG, "warning", lambda text, *given: said.append(text % given))
    model = unique("m")
    with settings(spark, {SESSION_ZONE: zone}):
        for _ in range(2):
            warn_unless_utc(spark, model)
    assert sum(f"{model}: batches of dbt are days or hours of UTC" in one for one in said) == warned == len(said)
