"""Whether a table was replaced by a commit that knows nothing of another run's, whose rows are then no longer in it."""

from __future__ import annotations

import logging

from pyspark.sql import SparkSession

from dbt_zorder.errors import BuildError, LostRowsError
from dbt_zorder.spark.catalog import TableName
from dbt_zorder.spark.messages import in_one_line
from dbt_zorder.tables.lakehouse.format import Format

_LOG = logging.getLogger("dbt_zorder")


def check_lost(spark: SparkSession, form: Format, table: TableName, before: str, token: str) -> None:
    """Find out whether somebody else committed between the reading of a table and the commit that replaced it.

    Delta refuses such a commit from when its own began. Iceberg's replacement never does, and takes the other's
    snapshot out of the table: it is in metadata files that the table does not name any more.

    Args:
        spark: the session.
        form: of the table.
        table: that was replaced.
        before: its version when it was read.
        token: of the commit that replaced it.

    Raises:
        LostRowsError: somebody did.
    """
    try:
        found = form.lost(spark, table, before, token)
    except Exception as exc:  # the rows are in: a run that fails now would be run again, and add them twice
        _LOG.warning(
            "it could not be told whether another run committed to %s just before this one: %s", table, in_one_line(exc)
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
    """Return the error of a rewrite beside which another run committed."""
    msg = (
        f"Another run changed {table} while it was laid out anew; its rows are kept, and the layout is left to "
        "the next run."
    )
    return BuildError(msg)
