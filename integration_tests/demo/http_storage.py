"""A folder as storage that is far away: each request for a file waits before it is answered.

It speaks WebHDFS, because PySpark brings a client of it. An object store would need jars of hundreds of megabytes.
Operations are those that Spark needs: https://hadoop.apache.org/docs/stable/hadoop-project-dist/hadoop-hdfs/WebHDFS.html.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

_ROOT = "/webhdfs/v1"
_PIECE = 1 << 20


class HttpStorage(ThreadingHTTPServer):
    """A server of one folder.

    Attributes:
        folder: where the files lie.
        delay: seconds that each request waits.
        requests: number of requests since the start.
    """

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.folder = folder
        self.delay = 0.0
        self.requests = 0
        self._lock = threading.Lock()

    @property
    def address(self) -> str:
        """URI of the folder for Spark."""
        return f"webhdfs://127.0.0.1:{self.server_port}"

    def wait(self) -> None:
        """Count a request, and let it wait."""
        with self._lock:
            self.requests += 1
        time.sleep(self.delay)


@contextlib.contextmanager
def serve(folder: Path) -> Iterator[HttpStorage]:
    """Serve a folder while the block runs; no request waits yet."""
    folder.mkdir(parents=True, exist_ok=True)
    with HttpStorage(folder) as storage:
        threading.Thread(target=storage.serve_forever, daemon=True).start()
        yield storage
        storage.shutdown()


class _Handler(BaseHTTPRequestHandler):
    """Answers to the requests of one connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 1 << 16
    server: HttpStorage

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Log no request."""

    def handle(self) -> None:
        """End the connection quietly if the client has closed it, as it does when it has read enough of a file."""
        with contextlib.suppress(ConnectionError):
            super().handle()

    def do_GET(self) -> None:
        """Answer with what a file or folder is, or with bytes."""
        self._answer(
            {
                "GETFILESTATUS": lambda: {"FileStatus": self._status(self.file, "")},
                "LISTSTATUS": lambda: {"FileStatuses": self._list()},
                "LISTSTATUS_BATCH": lambda: {
                    "DirectoryListing": {"partialListing": {"FileStatuses": self._list()}, "remainingEntries": 0}
                },
                "GETFILEBLOCKLOCATIONS": lambda: {"BlockLocations": {"BlockLocation": []}},
                "OPEN": self._read,
            }
        )

    def do_PUT(self) -> None:
        """Write a file, make a folder, or rename one of them."""
        self._answer(
            {
                "CREATE": self._write,
                "MKDIRS": lambda: {"boolean": self._make_folder()},
                "RENAME": lambda: {"boolean": self._rename()},
                "SETPERMISSION": dict,
                "SETTIMES": dict,
            }
        )

    def do_DELETE(self) -> None:
        """Delete a file or a folder."""
        self._answer({"DELETE": lambda: {"boolean": self._delete()}})

    def _answer(self, operations: dict[str, Callable[[], dict[str, Any] | None]]) -> None:
        """Run the operation that is asked for, and send the JSON that it returns, or the error that it raises."""
        url = urlsplit(self.path)
        self.asked = dict(parse_qsl(url.query))
        self.file = self._path(unquote(url.path.removeprefix(_ROOT)))
        name = self.asked["op"].upper()
        # HDFS's client first asks where the bytes are, an object store's does not: this neither waits nor counts
        if name in {"OPEN", "CREATE"} and "data" not in self.asked:
            self._send(307, headers={"Location": f"http://127.0.0.1:{self.server.server_port}{self.path}&data=true"})
            return
        self.server.wait()
        try:
            if name not in operations:
                raise NotImplementedError(name)
            found = operations[name]()
        except FileNotFoundError as exc:
            self._send_error(404, "java.io.FileNotFoundException", str(exc))
        except (OSError, NotImplementedError) as exc:
            self._send_error(403, "java.io.IOException", repr(exc))
        else:
            if found is not None:
                self._send(200, json.dumps(found).encode())

    def _path(self, name: str) -> Path:
        return self.server.folder / name.lstrip("/")

    def _status(self, file: Path, name: str) -> dict[str, Any]:
        found, is_folder = file.stat(), file.is_dir()
        return {
            "pathSuffix": name,
            "type": "DIRECTORY" if is_folder else "FILE",
            "length": 0 if is_folder else found.st_size,
            "modificationTime": int(found.st_mtime * 1000),
            "accessTime": 0,
            "blockSize": 0 if is_folder else 1 << 27,
            "replication": 0 if is_folder else 1,
            "permission": "777" if is_folder else "666",
            "owner": "anyone",
            "group": "anyone",
        }

    def _list(self) -> dict[str, Any]:
        files = sorted(self.file.iterdir()) if self.file.is_dir() else [self.file]
        return {"FileStatus": [self._status(file, file.name if file != self.file else "") for file in files]}

    def _read(self) -> None:
        first = int(self.asked.get("offset", 0))
        size = min(self.file.stat().st_size - first, int(self.asked.get("length", 1 << 62)))
        with self.file.open("rb") as file:
            file.seek(first)
            self._head(200, size, {"Content-Type": "application/octet-stream"})
            while size and (piece := file.read(min(size, _PIECE))):
                self.wfile.write(piece)
                size -= len(piece)

    def _write(self) -> None:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with self.file.open("wb") as file:
            while size := int(self.rfile.readline(), 16):  # the pieces of a chunked body
                file.write(self.rfile.read(size))
                self.rfile.readline()
        self.rfile.readline()
        self._send(201)

    def _make_folder(self) -> bool:
        self.file.mkdir(parents=True, exist_ok=True)
        return True

    def _rename(self) -> bool:
        target = self._path(self.asked["destination"])
        if target.is_dir():
            target /= self.file.name
        if not self.file.exists() or target.exists() or not target.parent.is_dir():
            return False
        self.file.rename(target)
        return True

    def _delete(self) -> bool:
        if self.file.is_dir():
            if self.asked.get("recursive") == "true":
                shutil.rmtree(self.file)
            else:
                self.file.rmdir()
        elif self.file.exists():
            self.file.unlink()
        else:
            return False
        return True

    def _send_error(self, code: int, name: str, text: str) -> None:
        error = {"exception": name.rpartition(".")[2], "javaClassName": name, "message": text}
        self._send(code, json.dumps({"RemoteException": error}).encode())

    def _send(self, code: int, body: bytes = b"", headers: dict[str, str] | None = None) -> None:
        self._head(code, len(body), {"Content-Type": "application/json", **(headers or {})})
        self.wfile.write(body)

    def _head(self, code: int, size: int, headers: dict[str, str]) -> None:
        self.send_response(code)
        for name, value in {**headers, "Content-Length": str(size)}.items():
            self.send_header(name, value)
        self.end_headers()
