"""One process with an embedded metastore of its own: steps on the table ``default.t``; each prints its rows.

Usage: embedded.py SESSION_DIR LOCATION_ROOT STEPS. STEPS are JSON, as ``[["build", 10], ["append", 5], ["vacuum"]]``;
an empty LOCATION_ROOT is the schema's folder.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from dbt_zorder.adapter.session.open import open_session
from dbt_zorder.layout.spec import LayoutSpec
from dbt_zorder.request import BuildRequest
from dbt_zorder.spark.catalog import TableName, location_of
from dbt_zorder.tables.batch import Batch
from dbt_zorder.tables.parquet.build import build
from dbt_zorder.tables.parquet.incremental import begin, increment
from dbt_zorder.tables.parquet.operations.drop import drop_table
from dbt_zorder.tables.parquet.operations.vacuum import vacuum

SETTINGS = {"spark.sql.shuffle.partitions": "2", "spark.master": "local[2]"}
TABLE = TableName("default", "t")


def main(directory: str, location_root: str, steps: list[list[Any]]) -> None:
    spark = open_session(SETTINGS, directory)
    spec = LayoutSpec(by=["id"], files=1)
    request = BuildRequest(TABLE, spec, location_root=location_root or None, keep_versions=0, grace_hours=0)
    for step, *given in steps:
        if step == "plain":
            spark.sql(f"CREATE TABLE {TABLE.sql} USING parquet AS SELECT id FROM range({given[0]})")
        if step == "build":
            build(spark, spark.range(*given).toDF("id"), request)
        if step == "append":
            before = begin(spark, TABLE)
            increment(spark, spark.range(*given).toDF("id"), request, Batch(may_rewrite=False), before)
        if step == "vacuum":
            vacuum(spark, TABLE, 0, 0, location_root or None, dry_run=False)
        if step == "drop":
            drop_table(spark, TABLE)
        is_there = spark.catalog.tableExists(TABLE.sql)
        state = [spark.table(TABLE.sql).count(), location_of(spark, TABLE)] if is_there else [None, ""]
        print(json.dumps(state), flush=True)  # noqa: T201
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], json.loads(sys.argv[3]))
