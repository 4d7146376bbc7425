"""Spark's own servers, started on this machine from the jars that PySpark brings.

A standalone cluster, and one JVM that serves Spark Connect and Thrift over one catalog.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyspark

SPARK_HOME = Path(pyspark.__file__).parent
_SECONDS = 120


@dataclass(frozen=True)
class Server:
    """Ports of the one JVM that serves both."""

    connect: int
    thrift: int


@contextlib.contextmanager
def standalone(folder: Path) -> Iterator[str]:
    """Give the address of a master with two workers of one core each, on hosts of two names.

    Spark runs no task a second time on a host where it runs already, whatever the settings of speculation.
    """
    port, ui = free_port(), free_port()
    master = ["spark-class", "org.apache.spark.deploy.master.Master", "--host", "localhost"]
    master += ["--port", str(port), "--webui-port", str(ui)]
    address = f"spark://localhost:{port}"
    worker = ["spark-class", "org.apache.spark.deploy.worker.Worker", "-c", "1", "-m", "1g"]
    with contextlib.ExitStack() as stack:
        stack.enter_context(_process(master, folder, "master"))
        wait_for(port, folder / "master.log")
        for number, host in enumerate(("localhost", "127.0.0.1")):
            own = ["--host", host, "--webui-port", str(free_port())]
            own += ["--work-dir", str(folder / f"work{number}"), address]
            stack.enter_context(_process([*worker, *own], folder, f"worker{number}"))
        _wait_for_text(folder / "master.log", "Registering worker", 2)
        yield address


@contextlib.contextmanager
def connect_and_thrift(folder: Path, again: Server | None = None) -> Iterator[Server]:
    """Give the ports of a server with a metastore and warehouse of its own in ``folder``; those of one before it."""
    server = again or Server(free_port(), free_port())
    derby = f"jdbc:derby:;databaseName={folder / 'metastore_db'};create=true"
    settings = {
        "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
        "spark.connect.grpc.binding.port": server.connect,
        "spark.sql.warehouse.dir": folder / "warehouse",
        "spark.hadoop.javax.jdo.option.ConnectionURL": derby,
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": 3,
    }
    command = ["spark-submit", "--master", "local[2]", "--driver-memory", "2g"]
    command += ["--class", "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2"]
    for key, value in settings.items():
        command += ["--conf", f"{key}={value}"]
    command += ["spark-internal", "--hiveconf", f"hive.server2.thrift.port={server.thrift}"]
    command += ["--hiveconf", "hive.server2.thrift.bind.host=localhost"]
    with _process(command, folder, "server"):
        for port in (server.connect, server.thrift):
            wait_for(port, folder / "server.log")
        yield server


def free_port() -> int:
    """Return a port that nobody listens on just now."""
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def _process(command: Sequence[str], folder: Path, name: str) -> Iterator[None]:
    env = {key: value for key, value in os.environ.items() if not key.startswith(("SPARK_", "PYSPARK_"))}
    with (folder / f"{name}.log").open("w") as log:
        process = subprocess.Popen(
            [str(SPARK_HOME / "bin" / command[0]), *command[1:]],
            cwd=folder,
            env={**env, "SPARK_HOME": str(SPARK_HOME), "SPARK_LOCAL_HOSTNAME": "localhost"},
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            yield
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)


def wait_for(port: int, log: Path) -> None:
    """Wait until somebody listens on a port.

    Raises:
        AssertionError: nobody does within two minutes; the message has the end of the log.
    """
    until = time.monotonic() + _SECONDS
    while time.monotonic() < until:
        with contextlib.suppress(OSError), socket.create_connection(("localhost", port), timeout=1):
            return
        time.sleep(0.3)
    raise AssertionError(f"nothing listens on {port}:\n{log.read_text()[-3000:]}")


def _wait_for_text(log: Path, text: str, times: int) -> None:
    until = time.monotonic() + _SECONDS
    while time.monotonic() < until:
        if log.read_text().count(text) >= times:
            return
        time.sleep(0.3)
    raise AssertionError(f"{text!r} was not said {times} times:\n{log.read_text()[-3000:]}")
