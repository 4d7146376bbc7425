"""Read and write one line of text in a folder of its own, such as a version's marker.

Spark reads and writes the folder as text, which works over Spark Connect. With a Hadoop client, the file is accessed
directly, which takes milliseconds instead of a job.
"""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from dbt_zorder.spark.files import exists, has_client, list_files, read_text, write_text
from dbt_zorder.spark.sql import glob_escape

_FILE = "part-00000.txt"


def write_line(spark: SparkSession, folder: str, line: str, *, renew: bool = False) -> None:
    """Write a line to a folder, which must not exist unless ``renew`` is set.

    Raises:
        FileExistsError: the folder exists, and ``renew`` is false.
    """
    if not has_client(spark):
        row = spark.range(1).select(f.lit(line).alias("value")).coalesce(1)
        row.write.mode("overwrite" if renew else "error").text(folder)
        return
    if not renew and exists(spark, folder):
        msg = f"The folder {folder} exists already."
        raise FileExistsError(msg)
    names = _data(list_files(spark, folder))
    write_text(spark, f"{folder}/{names[0] if names else _FILE}", line)


def read_line(spark: SparkSession, folder: str) -> str:
    """Return the line that a folder contains.

    Raises:
        LookupError: there is none.
        Py4JJavaError, AnalysisException: it cannot be read.
    """
    if not has_client(spark):
        rows = spark.read.text(glob_escape(folder)).collect()
        found = [str(row[0]) for row in rows]
    else:
        try:
            return read_text(spark, f"{folder}/{_FILE}").rstrip("\n")
        except Exception:  # Spark wrote it, under a name of its own
            found = [read_text(spark, f"{folder}/{name}").rstrip("\n") for name in _data(list_files(spark, folder))]
    if not found:
        msg = f"The folder {folder} holds no line."
        raise LookupError(msg)
    return found[0]


def _data(names: list[str]) -> list[str]:
    return [name for name in names if not name.startswith((".", "_"))]
