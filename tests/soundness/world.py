"""Small files of many types: each holds few values close together, so that its bounds say something."""

from __future__ import annotations

import datetime as dt
import random
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession

from dbt_zorder.stats.schema import stats_schema

MICROS = 1_000_000
DAY = 86_400 * MICROS


def _wall(micros: str) -> str:
    """A moment of UTC as text: a time without zone, which may lie in the hour that a zone leaves out."""
    return (dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=int(micros))).isoformat()


# Column -> (type, SQL that makes the value of a string, pools of such strings; a file draws from one pool)
_STRINGS = [
    ["", " ", "a", "a ", "A", "aa", "ab"],
    ["pre_0", "pre_1", "pre_10", "pre_2", "pre%", "pre"],
    ["prefix-common-to-all-000001", "prefix-common-to-all-000002", "prefix-common-to-all-1"],
    ["z", "zz", "é", "ß", "～", "\ud7ff", "\ufffd", "😀", "\U0010ffff"],
    ["10", "9", "1", "01", "1.0", "x", "5"],
    ["2024-01-01", "2024-1-1", "2024-01-02", "true"],
    ["BOB", "Bob", "bobby", "boC", "bO"],
    ["Kg", "kg", "\u212ag", "kG"],
    ["Ix", "ix", "\u0130x", "\u0131x"],
    ["SSx", "ssx", "\u00dfx", "FIx", "\ufb01x"],
]
_DATES = [
    ["-719162", "-141428", "-141427"],
    ["19722", "19723", "19724"],
    ["0", "-1", "1"],
    ["2932896", "20088", "19999"],
]
# UTC micros around the clock changes of St John's 2010, New York 2024, Apia 2011, and the ends of the calendar
_TIMES = [
    [str(v * MICROS) for v in (1289097001, 1289097060)],
    [str(v * MICROS) for v in (1289095400, 1289099000)],
    [str(v * MICROS) for v in (1268526600, 1268528700)],
    [str(v) for v in (1289100600 * MICROS, 1289100659 * MICROS, 1289104199 * MICROS, 1289097001 * MICROS)],
    [str(v) for v in (1730606400 * MICROS, 1730610000 * MICROS, 1730613600 * MICROS, 1730611800 * MICROS + 1)],
    [str(v) for v in (1325239200 * MICROS, 1325235600 * MICROS, 1325242800 * MICROS)],
    [str(v) for v in (1704067200 * MICROS, 1704067200 * MICROS + 456789, 1704067200 * MICROS - 1, 1704153600 * MICROS)],
    ["-62135596800000000", "253402300799999999", "-3786825600000000", "0", "-1"],
    # a summer, the hour that St John's shows twice after it, and the next summer
    [str(v * MICROS) for v in (1278000000, 1289097001, 1289097060, 1309536000)],
]
_FLOATS = [
    ["1.0", "1.5", "2.0"],
    ["NaN", "99.0", "50.0"],
    ["-0.0", "0.0"],
    ["Infinity", "-Infinity", "1e30"],
    ["0.1", "16777216"],
]
_DOUBLES = [*_FLOATS[:4], ["9007199254740992", "9007199254740994", "0.1"], ["-1e-300", "1e300", "2.5"]]
_INTS = [["0", "1", "2"], ["-1", "5", "7"], ["100", "101", "127"], ["-128", "-127", "50"]]
_LONGS = [
    *_INTS,
    ["9223372036854775807", "9007199254740993", "9007199254740992"],
    ["-9223372036854775808", "2147483648"],
]
_DECIMALS = [
    ["0.00", "1.00", "1.50"],
    ["-1.00", "9.99", "10.00"],
    ["1234567.89", "1234567.88"],
    ["-9999999.99", "5.00"],
]
_BYTES = [["00", "01FF", "7F"], ["80", "FF", "FFFF"], ["", "C3A9", "FE"], ["41", "4142", "61"]]

COLUMNS: dict[str, tuple[str, str, list[list[str]]]] = {
    "i8": ("tinyint", "cast({} AS tinyint)", _INTS),
    "i16": ("smallint", "cast({} AS smallint)", _INTS),
    "i32": ("int", "cast({} AS int)", [*_INTS, ["2147483647", "-2147483648", "16777217"]]),
    "i64": ("bigint", "cast({} AS bigint)", _LONGS),
    "f32": ("float", "cast({} AS float)", _FLOATS),
    "f64": ("double", "cast({} AS double)", _DOUBLES),
    "dec9": ("decimal(9,2)", "cast({} AS decimal(9,2))", _DECIMALS),
    "dec18": ("decimal(18,4)", "cast({} AS decimal(18,4))", _DECIMALS),
    "dec38": ("decimal(38,10)", "cast({} AS decimal(38,10))", [*_DECIMALS, ["1e27", "-1e27", "0.0000000001"]]),
    "s": ("string", "{}", _STRINGS),
    "vc": ("string", "{}", _STRINGS),
    "lc": ("string COLLATE UTF8_LCASE", "{} COLLATE UTF8_LCASE", [["a", "A", "b"], ["B", "c", "Z"], ["x", "X", "y"]]),
    "bin": ("binary", "unhex({})", _BYTES),
    "ok": ("boolean", "cast({} AS boolean)", [["true"], ["false"], ["true", "false"]]),
    "d": ("date", "date_from_unix_date(cast({} AS int))", _DATES),
    "ts": ("timestamp", "timestamp_micros(cast({} AS bigint))", _TIMES),
    "ntz": ("timestamp_ntz", "cast({} AS timestamp_ntz)", [[_wall(v) for v in pool] for pool in _TIMES]),
    "n1": ("int", "cast({} AS int)", [["1"], ["2"], ["3", "4"]]),
    "n2": ("bigint", "cast({} AS bigint)", [["1"], ["2"], ["3", "4"], ["5"]]),
}
LEAVES = {"st.i": "i32", "st.t": "s"}
"""Struct leaves, filled like the columns that they name."""


@dataclass
class World:
    """Rows with the number of their file, the stats of each file, and the plain rows for messages."""

    rows: DataFrame
    stats: DataFrame
    files: int
    seed: int
    values: list[dict[str, str | None]] = field(repr=False)

    def rows_of(self, number: int) -> list[dict[str, str | None]]:
        return [row for row in self.values if row["file_id"] == str(number)]


def make_rows(seed: int, files: int) -> list[dict[str, str | None]]:
    rng = random.Random(seed)
    rows: list[dict[str, str | None]] = []
    for number in range(files):
        size = rng.choice([1, 1, 2, 3, 4])
        drawn: list[dict[str, str | None]] = [{"file_id": str(number)} for _ in range(size)]
        for name in [*COLUMNS, *LEAVES]:
            pools = COLUMNS[LEAVES.get(name, name)][2]
            pool = rng.choice(pools)
            pool = rng.sample(pool, k=min(len(pool), rng.choice([1, 2, 3])))
            nulls = rng.choice([0, 0, 0, 0.4, 1])
            for row in drawn:
                row[name] = None if rng.random() < nulls else rng.choice(pool)
        for row in drawn:
            row["st"] = None if rng.random() < 0.1 else "there"
        rows += drawn
    return rows


def make_world(spark: SparkSession, seed: int, files: int) -> World:
    """Return ``files`` files of random rows, kept in memory, in the session's time zone."""
    values = make_rows(seed, files)
    names = list(values[0])
    raw = spark.createDataFrame(
        [tuple(row[name] for name in names) for row in values], [f"r{i}" for i in range(len(names))]
    )
    place = {name: f"r{names.index(name)}" for name in names}
    made = [f"{maker.format(place[name])} AS {name}" for name, (_, maker, _) in COLUMNS.items()]
    leaves = ", ".join(f"'{n.split('.')[1]}', {COLUMNS[like][1].format(place[n])}" for n, like in LEAVES.items())
    rows = raw.selectExpr(
        f"cast({place['file_id']} AS int) AS file_id",
        *made,
        f"if({place['st']} IS NULL, NULL, named_struct({leaves})) AS st",
        f"array({COLUMNS['i32'][1].format(place['i32'])}) AS arr",
    )
    rows = rows.coalesce(1).cache()
    rows.count()
    stats = stats_by_file(rows).coalesce(1).cache()
    return World(rows, stats, stats.count(), seed, values)


def stats_by_file(rows: DataFrame) -> DataFrame:
    """Return the stats of every ``file_id``, with its number as the path."""
    types = {name: rows.schema[name].dataType for name in COLUMNS}
    types |= {name: rows.select(name).schema.fields[0].dataType for name in LEAVES}
    shape = stats_schema(types)
    each = ", ".join(f"struct(min({name}), max({name}), count_if({name} IS NULL))" for name in types)
    packed = rows.groupBy("file_id").agg(_expr("count(*) AS n"), _expr(f"struct({each}) AS columns"))
    flat = packed.selectExpr(
        "cast(file_id AS string) file_path",
        "cast(file_id AS bigint) file_size",
        "n row_count",
        "'v1' version",
        "columns",
    )
    return flat.select(*(flat[field.name].cast(field.dataType).alias(field.name) for field in shape.fields))


def _expr(sql: str):  # type: ignore[no-untyped-def]
    from pyspark.sql.functions import expr

    return expr(sql)
