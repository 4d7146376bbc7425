"""Check of a model's ``grants`` before anything is built."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.errors import ParseException
from pyspark.sql import SparkSession

from dbt_zorder.errors import ConfigError
from dbt_zorder.spark.jvm import sql_parser


def check_grants(spark: SparkSession, model: Mapping[str, Any]) -> None:
    """Raise if a model has ``grants`` and the session cannot parse GRANT. Only an extension adds GRANT to Spark.

    dbt grants after it has built the table. A run that failed at that point would have added its rows already.

    Raises:
        ConfigError: the session does not support GRANT.
    """
    grants = model["config"].get("grants") or {}
    parser = sql_parser(spark) if grants else None
    if parser is None:
        return
    try:
        parser.parsePlan("GRANT SELECT ON TABLE a TO `b`")
    except ParseException as exc:
        listed = "; ".join(
            f"{privilege}: {', '.join(map(str, names)) or 'nobody'}" for privilege, names in sorted(grants.items())
        )
        msg = (
            f"grants asks for {listed}, and this Spark session has no GRANT, so that the run would fail with the table "
            "built. Leave grants out for this target; an extension of Spark that knows GRANT comes by "
            "spark.sql.extensions in server_side_parameters."
        )
        raise ConfigError(msg) from exc
