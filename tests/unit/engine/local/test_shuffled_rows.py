from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from dbt_zorder.engine.local.shuffled_rows import ShuffledRows
from dbt_zorder.engine.local.spool.arrow_files import BatchFiles
from dbt_zorder.engine.local.spool.parquet_files import RowFiles
from dbt_zorder.engine.local.spool.spool import spool_rows
from dbt_zorder.layout.spec import LayoutSpec, keys_for

QUERY = """
    SELECT id, CAST(if(id % 3 = 0, NULL, id * -1.5BD) AS decimal(9, 2)) AS price, CAST(id AS decimal(12, 1)) AS key,
      array(id) AS l FROM range(0, 100, 1, 1)
"""


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("kind", [RowFiles, BatchFiles])
def test_rows_come_back_as_they_were_in_another_order(
    spark: SparkSession, kind: type[RowFiles | BatchFiles], threads: int
) -> None:
    frame = spark.sql(QUERY)
    if kind is BatchFiles:  # which are of plain types
        frame = frame.withColumn("l", frame.l[0])
    keys = keys_for(frame, LayoutSpec(by=["key"]))
    with spool_rows(frame, keys=keys if kind is BatchFiles else None) as copy:
        assert copy is not None
        assert isinstance(copy.files, kind)
        rows = ShuffledRows(copy, keys)
        (chunk,) = copy.chunks
        read, cells = copy.read(chunk), np.arange(100, dtype=np.int64)
        compact = copy.read_compact(chunk, rows.shortened)
        shuffled = rows.pack(compact, cells, 1 << 31)
        short = rows.pack(compact, cells, 100, np.full(100, 7, dtype=np.int32))
        assert shuffled["c1"].type == pa.int32(), "a decimal that places no row is a whole number on its way"
        assert shuffled["c2"].type == pa.decimal128(12, 1)
        assert (shuffled["cell"].type, short["cell"].type) == (pa.int64(), pa.int32())
        assert rows.folders(short).tolist() == [7] * 100
        order = np.arange(99, -1, -1)
        for one in (read, shuffled, short):
            found = rows.unpack(one, order, threads)
            assert found.column_names == ["id", "price", "key", "l"]
            assert found["id"].to_pylist() == list(range(99, -1, -1))
            assert found["price"].to_pylist() == [row.price for row in reversed(frame.collect())]
            assert found["l"].to_pylist() == [row.l for row in reversed(frame.collect())]
