"""Check for a Java that the installed PySpark can run on, and options for starting it.

The check runs before anything starts, and its error is one sentence.
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
    """Return the feature release from the output of ``java -version``, or None if there is none. ``1.8.0_402`` is 8."""
    match = _VERSION.search(banner)
    if match is None:
        return None
    first = int(match["first"])
    return int(match["second"]) if first == 1 and match["second"] else first


def find_java() -> Path | None:
    """Return the java that Spark's launcher would run: the one in ``JAVA_HOME`` if set, else the first on the PATH."""
    home = os.environ.get("JAVA_HOME")
    if home:
        return Path(home) / "bin" / "java"
    found = shutil.which("java")
    return Path(found) if found else None


def check_java(pyspark_version: str) -> None:
    """Raise unless there is a Java that PySpark supports.

    Accept a Java whose version cannot be read, because Spark itself can judge it better.

    Raises:
        JavaError: there is no Java, it cannot be run, or it is too old.
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
    """Return the option for Java's parallel garbage collector, or an empty string if the user has chosen a collector.

    Java's default, G1, aims at short pauses and makes batches slower (docs/decisions/008-garbage-collector.md).
    Java does not start with two collectors.

    Args:
        users: Java options from the user's settings. The environment's options are read as well.
    """
    given = " ".join([users, *(os.environ.get(name, "") for name in _OPTIONS)])
    return "" if _COLLECTOR.search(given) else "-XX:+UseParallelGC"
