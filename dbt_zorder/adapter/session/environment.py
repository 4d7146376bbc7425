"""Reader of the settings in this machine's ``spark-defaults.conf`` and ``hive-site.xml``."""

from __future__ import annotations

import os
import re
from pathlib import Path
from xml.etree import ElementTree

import pyspark

_LINE = re.compile(r"([^\s=:]+)\s*[\s=:]\s*(.*?)\s*")
_HADOOP = "spark.hadoop."
_HIVE = "spark.hive."


def read_spark_files() -> dict[str, str]:
    """Return the settings that Spark reads from files. Names of Hive and Hadoop settings begin with ``spark.hadoop.``.

    A setting passed to a new session overrides them. ``spark-env.sh`` and Hive's own folder are not read.
    """
    home = os.environ.get("SPARK_HOME") or str(Path(pyspark.__file__).parent)
    spark = Path(os.environ.get("SPARK_CONF_DIR") or f"{home}/conf")
    others = (os.environ.get(name) for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR"))
    sites = (folder / "hive-site.xml" for folder in (spark, *map(Path, filter(None, others))))
    # Java reads the first one on its class path
    site = next((file for file in sites if file.is_file()), None)
    found = {f"{_HADOOP}{name}": value for name, value in _hive_site(site).items()} if site else {}
    return found | {hadoop_name(name): value for name, value in _spark_defaults(spark).items()}


def hadoop_name(name: str) -> str:
    """Return a setting's name with the prefix ``spark.hadoop.``. Spark passes ``spark.hive.x`` on as ``hive.x``."""
    return f"{_HADOOP}hive.{name.removeprefix(_HIVE)}" if name.startswith(_HIVE) else name


def _spark_defaults(folder: Path) -> dict[str, str]:
    try:
        lines = (folder / "spark-defaults.conf").read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return {}
    matched = (_LINE.fullmatch(line.strip()) for line in lines if not line.lstrip().startswith(("#", "!")))
    return {line[1]: line[2] for line in matched if line}


def _hive_site(file: Path) -> dict[str, str]:
    try:
        root = ElementTree.parse(file).getroot()
    except (OSError, ElementTree.ParseError):
        return {}
    properties = ((one.findtext("name", ""), one.findtext("value", "")) for one in root.iter("property"))
    return {name.strip(): value.strip() for name, value in properties if name.strip()}
