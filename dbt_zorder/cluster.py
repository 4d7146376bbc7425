"""Z-order clustering of any DataFrame, for users of plain PySpark."""

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
    """Return ``df`` with its rows in one Spark partition a file, each file one box of the column space.

    Write it as it is: ``cluster(df, ["customer_id", "event_ts"], files=16).write.parquet(path)``. The query behind
    ``df`` runs twice before that, for its count and for a sample of the key columns; persist one that is expensive. A
    write that partitions may sort each Spark partition again if ``spark.sql.maxConcurrentOutputFileWriters`` is no more
    than the partitions that stand in it, up to 64, and lose the order of what goes to disk; dbt's sessions have 100.

    Args:
        df: any batch DataFrame.
        by: 1 to 8 columns; struct leaves by dots.
        files: exact number of files (of each partition), instead of a size; fewer only where rows are equal.
        file_size: ``auto`` (128 MB, more above 100 GB), bytes, or a text like ``64MB``.
        seed: of the sample: the same input in the same input splits gives the same files.
        partition_by: the columns that the write will partition by.
        curve: ``zorder``, ``hilbert``, or ``linear``: the order of the columns one after another.
        encoding: ``rank`` among sampled boundaries, or the type's own ``bits``.
        page_rows: what the write sets ``parquet.page.row.count.limit`` to, if it does: rows are ordered as finely.
        weights: one positive number a column: how much its filters count; all equal by default.

    Raises:
        ColumnError: a column is not named by a text, unknown, ambiguous, named twice, or of a type that Spark cannot
            order.
        ConfigError: the number of columns, of files or another is out of range, there is no such curve or encoding, or
            one setting leaves another without effect.
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
    """Return the names that a caller gave, of which one may stand alone."""
    return list(names) if isinstance(names, (list, tuple)) else [names]  # type: ignore[list-item]
