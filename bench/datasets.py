"""Synthetic tables, made by Spark from a seed and kept as Parquet between runs."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

DATA = Path(__file__).parent / "data"

MILLION = 1_000_000


def narrow(spark: SparkSession, rows: int) -> DataFrame:
    """Nine columns of the usual types, every key uniform: the narrow fact table of docs/decisions/001."""
    return spark.range(0, rows, 1, 16).selectExpr(
        "id",
        "cast(rand(1) * 1e9 as bigint) as customer_id",
        "timestamp_micros(cast(1.6e15 + rand(2) * 1e14 as bigint)) as event_ts",
        "cast(rand(3) * 1e6 as int) as product_id",
        "cast(rand(4) * 1e5 as int) as store_id",
        "rand(5) as score",
        "cast(rand(6) * 1000 as decimal(9, 2)) as price",
        "concat('sku-', lpad(cast(cast(rand(7) * 1e6 as int) as string), 7, '0')) as sku",
        "cast(rand(8) * 100 as int) as quantity",
    )


def fact(spark: SparkSession, rows: int) -> DataFrame:
    """Twenty-three columns like a store's sales, with 4.5% NULL in each of them."""
    columns = []
    for number in range(22):
        if number < 10:
            value = f"cast(rand({number}) * {10 ** (3 + number % 5)} as int)"
        else:
            value = f"cast(rand({number}) * 200 as decimal(7, 2))"
        columns.append(f"if(rand({100 + number}) < 0.045, null, {value}) as c{number}")
    return spark.range(0, rows, 1, 16).selectExpr("id", *columns)


def wide(spark: SparkSession, rows: int, columns: int) -> DataFrame:
    """Many columns, half numbers and half short strings."""
    return spark.range(0, rows, 1, 8).selectExpr(
        "id",
        *(
            f"cast(rand({n}) * 1e6 as int) as c{n}" if n % 2 == 0 else f"hex(cast(rand({n}) * 1e6 as int)) as c{n}"
            for n in range(columns - 1)
        ),
    )


def events(spark: SparkSession, rows: int) -> DataFrame:
    """Seven columns as of a shop's events: two keys, a text, and a struct in a struct, an array of structs, a map."""
    return spark.range(0, rows, 1, 16).selectExpr(
        "id",
        "cast(rand(1) * 1e5 as int) as customer_id",
        "timestamp_micros(cast(1.6e15 + rand(2) * 1e14 as bigint)) as event_ts",
        "md5(string(id)) as session",
        "named_struct('country', concat('C', cast(rand(3) * 200 as int)), 'device', named_struct("
        "'os', concat('os', cast(rand(4) * 7 as int)), 'version', cast(rand(5) * 50 as int))) as context",
        "transform(sequence(1, 1 + cast(rand(6) * 5 as int)), place -> named_struct('sku', concat('sku', "
        "pmod(hash(id, place), 5000)), 'price', pmod(hash(id, place, 1), 100000) / 100D, 'quantity', place)) as items",
        "map('campaign', concat('m', cast(rand(7) * 300 as int)), 'referrer', if(id % 3 = 0, null, 'x')) as tags",
    )


def kept(spark: SparkSession, name: str, make: Callable[[], DataFrame]) -> DataFrame:
    """Return a table from disk, made and written the first time."""
    path = DATA / name
    if not (path / "_SUCCESS").exists():
        make().write.mode("overwrite").parquet(str(path))
    return spark.read.parquet(str(path))


def fresh(df: DataFrame, build: int) -> DataFrame:
    """Return the columns in an order of this build's own, so that it finds no code compiled by another one.

    In a ``dbt run`` each model is built once. A benchmark that writes one table again and again measures Spark without
    its compilers, and a sample drawn anew spares only those builds that have cuts in their code.
    """
    return df.select(random.Random(build).sample(df.columns, len(df.columns)))


def ordered(df: DataFrame, files: int, keys: Sequence[str]) -> DataFrame:
    """Order rows as a user of ORDER BY does who wants a number of files."""
    return df.repartitionByRange(files, *keys).sortWithinPartitions(*keys)


def bytes_of(folder: Path) -> int:
    """Return the bytes of the Parquet files in a folder."""
    return sum(path.stat().st_size for path in folder.glob("*.parquet"))
