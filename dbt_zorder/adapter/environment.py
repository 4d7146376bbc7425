"""What this machine's own files tell Spark: ``spark-defaults.conf`` and ``hive-site.xml``."""

from __future__ import annotations

import os
import re
from pathlib import Path
from xml.etree import ElementTree

import pyspark

_LINE = re.compile(r"([^\s=:]+)\s*[\s=:]\s*(.*?)\s*")
_HADOOP = "spark.hadoop."
_HIVE = "spark.hive."


def configured() -> dict[str, str]:
    """Return the settings that Spark takes from files, those of Hive and Hadoop by their names with ``spark.hadoop.``.

    What a session is opened with would win over them.
    """
    found: dict[str, str] = {}
    home = os.environ.get("SPARK_HOME") or str(Path(pyspark.__file__).parent)
    spark = os.environ.get("SPARK_CONF_DIR") or f"{home}/conf"
    for folder in filter(None, (os.environ.get("HADOOP_CONF_DIR"), spark)):  # the later one wins
        found |= {f"{_HADOOP}{name}": value for name, value in _hive_site(Path(folder)).items()}
    for name, value in _spark_defaults(Path(spark)).items():
        # Spark hands spark.hive.x on as hive.x
        found[f"{_HADOOP}hive.{name.removeprefix(_HIVE)}" if name.startswith(_HIVE) else name] = value
    return found


def _spark_defaults(folder: Path) -> dict[str, str]:
    try:
        lines = (folder / "spark-defaults.conf").read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return {}
    matched = (_LINE.fullmatch(line.strip()) for line in lines if not line.lstrip().startswith(("#", "!")))
    return {line[1]: line[2] for line in matched if line}


def _hive_site(folder: Path) -> dict[str, str]:
    try:
        root = ElementTree.parse(folder / "hive-site.xml").getroot()
    except (OSError, ElementTree.ParseError):
        return {}
    named = ((one.findtext("name", ""), one.findtext("value", "")) for one in root.iter("property"))
    return {name.strip(): value.strip() for name, value in named if name.strip()}
