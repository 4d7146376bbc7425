"""The hash index of a table: the bucket of each row, by Spark's own hash of a key.

Files carry Spark's bucket ids, and the catalog declares the buckets. Plain SQL of any session then reads one bucket for
a value of the key, and joins or groups by the key without a shuffle. Hudi's RFC-29 has the idea; the hash is Spark's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import types as t

from dbt_zorder.errors import ColumnError
from dbt_zorder.spark.columns import ResolvedColumn, resolve_all
from dbt_zorder.spark.sql import quote_name

BUCKET = "__zorder_bucket"
"""Column of a row's bucket while rows are placed; no table has it."""

BUCKET_ID = r".*_(\d+)(?:\..*)?$"
"""Spark's own pattern of the bucket in a file's name: the last number after an underscore, before a dot or the end."""

MOST_BUCKETS = 100_000
"""Spark's own limit, ``spark.sql.sources.bucketing.maxBuckets``."""

_HASHED = (
    t.BooleanType, t.ByteType, t.ShortType, t.IntegerType, t.LongType, t.DecimalType, t.DateType, t.TimestampType,
    t.TimestampNTZType, t.BinaryType, t.StringType, t.YearMonthIntervalType, t.DayTimeIntervalType,
)  # fmt: skip


@dataclass(frozen=True)
class HashIndex:
    """The request for a hash index.

    Attributes:
        by: columns of the key, as the user wrote them.
        buckets: number of buckets, from 2 to ``MOST_BUCKETS``; None lets a build choose it by ``fitting_buckets``.
    """

    by: Sequence[str]
    buckets: int | None

    @classmethod
    def of_names(cls, names: Sequence[str], buckets: int) -> HashIndex | None:
        """Return the index of a table whose catalog entry or marker has these column names; None for 0 buckets."""
        return cls([quote_name(name) for name in names], buckets) if buckets else None

    def columns(self, schema: t.StructType, *, sensitive: bool) -> list[ResolvedColumn]:
        """Resolve and check the columns of the key.

        Raises:
            ColumnError: a column does not exist, is a field inside another one, or has a type that cannot serve.
        """
        columns = resolve_all(self.by, schema, sensitive=sensitive)
        for column in columns:
            _check(column)
        return columns

    def bucket_sql(self, schema: t.StructType, *, sensitive: bool) -> str:
        """Return SQL text of a row's bucket: what Spark's bucketed scan and ``HashPartitioning`` compute."""
        assert self.buckets is not None
        columns = ", ".join(column.sql for column in self.columns(schema, sensitive=sensitive))
        return f"pmod(hash({columns}), {self.buckets})"


def fitting_buckets(files: Sequence[int], columns: int, now: int) -> int:
    """Return the number of buckets that costs the clustering columns what the key costs as one more of them.

    Of F files that are boxes in d columns, a point query reads F^((d-1)/d). N buckets make that N^(1/d) times as many.
    With N = F^(1/(d+1)), it reads F^(d/(d+1)) files, like a table of boxes in d + 1 columns.

    Args:
        files: number of files in each partition, without buckets.
        columns: number of clustering columns.
        now: number of buckets that the table has, which never becomes less; 0 for none.

    Returns:
        A power of two, at least 2; or ``now``.
    """
    mean = max(1.0, sum(files) / max(1, len(files)))
    return int(max(now, 2, 2 ** round(math.log2(mean) / (columns + 1))))


def splits_into(now: int, wanted: int) -> bool:
    """Return whether each of ``now`` buckets can be split into equal parts, so that there are ``wanted``.

    The hash modulo 2N, taken modulo N, is the hash modulo N: bucket b becomes b and b + N.
    """
    times = wanted // now if now and wanted % now == 0 else 0
    return times > 1 and times & (times - 1) == 0


def _check(column: ResolvedColumn) -> None:
    """Raise if the values of a column have no bucket by which a look-up and a join find them."""
    if len(column.path) > 1:
        msg = f"clustered_by names '{column.name}', a field inside a column; Spark's buckets need a whole column."
        raise ColumnError(msg)
    kind = column.data_type
    if isinstance(kind, (t.FloatType, t.DoubleType)):
        msg = (
            f"clustered_by names '{column.name}', which is a {kind.typeName()}: Spark changes such values before it "
            "joins by them, so their buckets would spare no shuffle. Make it a decimal, or name another column."
        )
        raise ColumnError(msg)
    if not isinstance(kind, _HASHED):
        msg = (
            f"clustered_by names '{column.name}' of type {kind.simpleString()}, which has no bucket. Whole numbers, "
            "decimals, text, binary, booleans, dates, timestamps and intervals can be used."
        )
        raise ColumnError(msg)
    if isinstance(kind, t.StringType) and getattr(kind, "collation", "UTF8_BINARY") != "UTF8_BINARY":
        msg = (
            f"clustered_by names '{column.name}', a text with a collation: Spark has no buckets by it. Name another "
            "column, or cast it to STRING in the query."
        )
        raise ColumnError(msg)
