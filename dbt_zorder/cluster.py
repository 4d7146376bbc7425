"""Z-order clustering of any DataFrame for users of plain PySpark."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from dbt_zorder.engine.plan import plan_layout
from dbt_zorder.engine.spark.descent import apply_layout
from dbt_zorder.layout.spec import LayoutSpec


def cluster(
    df: DataFrame,
    by: str | Sequence[str],
    files: int | None = None,
    file_size: str | int = "auto",
    seed: int = 0,
    partition_by: str | Sequence[str] = (),
    curve: str = "zorder",
    encoding: str = "rank",
    page_rows: int | None = None,
    weights: Sequence[float] | None = None,
) -> DataFrame:
    """Return ``df`` with one Spark partition per output file. Each file covers one box of the column space.

    Write the result without further changes:
    ``cluster(df, ["customer_id", "event_ts"], files=16).write.parquet(path)``.

    Before the write, the query behind ``df`` runs twice: once for its count, and once for a sample of the key columns.
    Persist an expensive ``df``.

    A write with ``partitionBy`` may sort each Spark partition again. Spark does so if
    ``spark.sql.maxConcurrentOutputFileWriters`` does not exceed the number of table partitions in a Spark partition,
    which is at most 64. A sort that spills to disk loses the row order. dbt's sessions set 100.

    Args:
        df: any batch DataFrame.
        by: names of 1 to 8 columns. A dot separates a struct from its field.
        files: exact number of files (per partition), in place of a size. Equal rows may result in fewer files.
        file_size: target size: ``auto`` (128 MB, more above 100 GB), a number of bytes, or a text such as ``64MB``.
        seed: seed of the sample. The same input in the same input splits gives the same files.
        partition_by: the columns that the write will partition by.
        curve: ``zorder``, ``hilbert`` or ``linear``. The last one sorts by one column after another.
        encoding: ``rank`` among sampled boundaries, or ``bits`` of the type's own representation.
        page_rows: the value of ``parquet.page.row.count.limit``, if the write sets it. Rows are ordered as finely as
            these pages.
        weights: one positive number per column, the weight of filters on that column. Equal by default.

    Raises:
        ColumnError: a column name is not a text, is unknown, ambiguous or repeated, or Spark cannot order its type.
        ConfigError: a number is out of range, a curve or encoding does not exist, or one setting makes another
            ineffective.
    """
    spec = LayoutSpec(
        by=_listed(by),
        files=files,
        file_size=file_size,
        partition_by=_listed(partition_by),
        seed=seed,
        curve=curve,
        encoding=encoding,
        page_rows=page_rows,
        weights=weights,
    )
    return apply_layout(df, plan_layout(df, spec))


def _listed(names: str | Sequence[str]) -> list[str]:
    """Return the caller's names as a list. A single name may come without one."""
    return list(names) if isinstance(names, (list, tuple)) else [names]  # type: ignore[list-item]
