"""Detect a replacement that dropped the rows of another run's commit."""

from __future__ import annotations

import logging

from pyspark.sql import SparkSession

from dbt_zorder.errors import BuildError, LostRowsError
from dbt_zorder.spark.catalog import TableName
from dbt_zorder.spark.messages import in_one_line
from dbt_zorder.tables.lakehouse.format import Format

_LOG = logging.getLogger("dbt_zorder")


def check_lost(spark: SparkSession, form: Format, table: TableName, before: str, token: str) -> None:
    """Check for a commit of another run between the read of a table and its replacement.

    Delta rejects a replacement if another commit followed the start of its transaction. Iceberg never rejects one, and
    removes the other's snapshot from the table. That snapshot remains in metadata files that the table no longer lists.

    Args:
        spark: the session.
        form: the format of the table.
        table: the replaced table.
        before: its version when it was read.
        token: the token of the commit that replaced it.

    Raises:
        LostRowsError: another run committed in between.
    """
    try:
        found = form.lost(spark, table, before, token)
    except Exception as exc:  # the rows are committed: a retry after a failure would add them twice
        _LOG.warning(
            "commits of other runs to %s just before this one could not be looked for: %s", table, in_one_line(exc)
        )
        return
    if found:
        msg = (
            f"Another run changed {table} while this one was building it anew of all its rows. That is done, and the "
            f"batch of this run is in the table; the other's rows may not be. They are in {found}: compare, and add "
            "from there what is missing."
        )
        raise LostRowsError(msg)


def interrupted(table: TableName) -> BuildError:
    """Return the error of a rewrite that met a concurrent commit."""
    msg = (
        f"Another run changed {table} while it was laid out anew; its rows are kept, and the layout is left to "
        "the next run."
    )
    return BuildError(msg)
