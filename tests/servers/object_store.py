"""S3 on this machine: moto's server as a process of its own, and what a session needs to reach it."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from tests.cluster.servers import free_port, wait_for

BUCKET = "warehouse"
_HADOOP, _SDK = "3.4.2", "2.29.52"
_MODULES = ("s3", "sts", "s3-transfer-manager", "apache-client", "netty-nio-client")
"""What Hadoop's client uses of AWS's; all of it, which it asks for by default, is 640 MB."""


@contextlib.contextmanager
def object_store(folder: Path) -> Iterator[str]:
    """Run a store that has one empty bucket while the block runs; give its address.

    Args:
        folder: for its log.
    """
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    program = os.environ.get("MOTO_SERVER", str(Path(sys.executable).with_name("moto_server")))
    if not Path(program).exists():
        msg = f"There is no {program}: `make servers-test` installs it, as pip install '.[servers]' does."
        raise FileNotFoundError(msg)
    with (folder / "store.log").open("w") as log:
        process = subprocess.Popen([program, "-H", "127.0.0.1", "-p", str(port)], stdout=log, stderr=log, cwd=folder)
        try:
            wait_for(port, folder / "store.log")
            request = urllib.request.Request(f"{address}/{BUCKET}", method="PUT")
            with urllib.request.urlopen(request, timeout=60):
                yield address
        finally:
            process.kill()
            process.wait()


def store_settings(address: str) -> dict[str, str]:
    """Return the settings of a session whose warehouse is the bucket of a store."""
    client = {
        "endpoint": address,
        "endpoint.region": "us-east-1",
        "access.key": "any",
        "secret.key": "any",
        "path.style.access": "true",
        "connection.ssl.enabled": "false",
    }
    packages = [f"org.apache.hadoop:hadoop-aws:{_HADOOP}"]
    packages += [f"software.amazon.awssdk:{module}:{_SDK}" for module in _MODULES]
    return {
        "spark.jars.packages": ",".join(packages),
        "spark.jars.excludes": "software.amazon.awssdk:bundle",
        "spark.sql.warehouse.dir": f"s3a://{BUCKET}/tables",
        **{f"spark.hadoop.fs.s3a.{key}": value for key, value in client.items()},
    }
