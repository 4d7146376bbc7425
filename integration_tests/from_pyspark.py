"""The flights as a z-ordered table from plain PySpark, without dbt, and what a query of one plane reads of it.

python load_nycflights13.py && python from_pyspark.py
"""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession
from rich.console import Console

from dbt_zorder.adapter.session.open import SESSION_DIRECTORY
from dbt_zorder.api import explain, open_session, query, save_table

HERE = Path(__file__).parent
TABLE = "from_pyspark.flights"
BY = ["tailnum", "time_hour"]


def main(spark: SparkSession, folder: Path, console: Console) -> None:
    """Save the flights that ``load_nycflights13.py`` has left in a folder, and say what was done."""
    spark.sql("create schema if not exists from_pyspark")
    flights = spark.read.parquet(str(folder / "flights.parquet"))
    console.print(str(save_table(flights, TABLE, BY, mode="overwrite", files=16)))
    console.print(explain(spark, TABLE, "tailnum = 'N14228'"))
    query(spark, f"select month, count(*) from {TABLE} where tailnum = 'N14228' group by month order by month").show()


if __name__ == "__main__":
    main(
        open_session({"spark.sql.session.timeZone": "UTC"}, str(HERE / SESSION_DIRECTORY)),
        HERE / "data",
        Console(width=140),
    )
