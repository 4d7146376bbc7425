"""A Hive metastore as a process of its own, from PySpark's jars, so that many sessions share one catalog."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from xml.sax.saxutils import escape

import pyspark

MAIN = "org.apache.hadoop.hive.metastore.HiveMetaStore"


@contextlib.contextmanager
def metastore(directory: Path) -> Iterator[str]:
    """Run a metastore with Derby behind it while the block runs; give its URI.

    Args:
        directory: for its database, settings and log.

    Raises:
        RuntimeError: it did not start within two minutes; the message has the end of its log.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    settings = {
        "hive.async.log.enabled": "false",  # its logger needs a library that PySpark does not bring
        "datanucleus.schema.autoCreateAll": "true",
        "hive.metastore.schema.verification": "false",
        "hive.metastore.disallow.incompatible.col.type.changes": "false",
        "hive.metastore.warehouse.dir": str(directory / "warehouse"),
        "javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={directory / 'db'};create=true",
    }
    pairs = (f"<property><name>{k}</name><value>{escape(v)}</value></property>" for k, v in settings.items())
    conf = directory / "conf"
    conf.mkdir(parents=True)
    (conf / "hive-site.xml").write_text(f"<configuration>{''.join(pairs)}</configuration>")
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else "java"
    jars = Path(pyspark.__file__).parent / "jars"
    with (directory / "log").open("w") as log:
        process = subprocess.Popen(
            [java, "-Xmx256m", f"-Dderby.stream.error.file={directory / 'derby.log'}", "-cp", f"{conf}:{jars}/*", MAIN,
             "-p", str(port)],
            stdout=log, stderr=log, cwd=directory,
        )  # fmt: skip
        try:
            _wait(process, port, directory / "log")
            yield f"thrift://127.0.0.1:{port}"
        finally:
            process.kill()
            process.wait()


def _wait(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    limit = time.monotonic() + 120
    while time.monotonic() < limit and process.poll() is None:
        with socket.socket() as client:
            if client.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    msg = f"The metastore did not start: {log.read_text()[-2000:]}"
    raise RuntimeError(msg)
