"""Is there a Java that the installed PySpark can run on, and how is it to be started?

Asked before anything starts, and answered in one sentence.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from dbt_zorder.errors import ZorderError

_VERSION = re.compile(r'version "(?P<first>\d+)(?:\.(?P<second>\d+))?')
_COLLECTOR = re.compile(r"-XX:\+Use\w+GC\b|-XX:G1")
_OPTIONS = ("JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS")
"""Environment variables whose options reach Spark's JVM."""


class JavaError(ZorderError):
    """No Java was found, or one that is too old for the installed PySpark."""


def required_java(pyspark_version: str) -> int:
    """Return the oldest Java feature release that a PySpark version runs on (4.x: 17, 3.5: 8)."""
    return 17 if int(pyspark_version.split(".")[0]) >= 4 else 8


def parse_java_version(banner: str) -> int | None:
    """Return the feature release from what ``java -version`` prints (``1.8.0_402`` is 8), None if it does not say."""
    match = _VERSION.search(banner)
    if match is None:
        return None
    first = int(match["first"])
    return int(match["second"]) if first == 1 and match["second"] else first


def find_java() -> Path | None:
    """Return the java that Spark's launcher would run: that of ``JAVA_HOME`` if set, else the first on the PATH."""
    home = os.environ.get("JAVA_HOME")
    if home:
        return Path(home) / "bin" / "java"
    found = shutil.which("java")
    return Path(found) if found else None


def check_java(pyspark_version: str) -> None:
    """Raise JavaError unless a fitting Java is there.

    A Java whose version cannot be read is let through: Spark itself is the better judge of it.
    """
    needed = required_java(pyspark_version)
    wish = f"PySpark {pyspark_version} needs Java {needed} or newer"
    java = find_java()
    if java is None:
        msg = f"{wish}, and no java was found: install one, or set JAVA_HOME to its folder."
        raise JavaError(msg)
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30, check=False)
    except OSError as exc:
        where = "JAVA_HOME points to" if os.environ.get("JAVA_HOME") else "the PATH leads to"
        msg = f"{wish}, and {where} {java}, which cannot be run ({exc.strerror}): install a Java, or set JAVA_HOME."
        raise JavaError(msg) from exc
    except subprocess.TimeoutExpired:
        return
    found = parse_java_version(done.stderr + done.stdout)
    if found is not None and found < needed:
        msg = f"{wish}, and {java} is Java {found}: install a newer one, or set JAVA_HOME to it."
        raise JavaError(msg)


def collector(users: str) -> str:
    """Return the option that chooses Java's parallel garbage collector, empty where the user has chosen one.

    Java's own choice, G1, is made for short pauses, and costs batches more (docs/decisions/008-garbage-collector.md).
    Two collectors named at once keep Java from starting.

    Args:
        users: options that the user's settings give; those of the environment are looked at as well.
    """
    given = " ".join([users, *(os.environ.get(name, "") for name in _OPTIONS)])
    return "" if _COLLECTOR.search(given) else "-XX:+UseParallelGC"
