"""A folder served as a bucket of S3, in which each request waits: ``python -m bench.slow_store FOLDER PORT``.

It serves what Hadoop's S3A client and Spark need: objects whole and in ranges, lists, copies and deletions. It replaces
moto's server and a proxy before it. Moto needs about 7 ms of one processor for a part of an object, whoever else waits,
and forgets all tables when it ends. This store needs less than 1 ms, and its folder stays.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BufferedIOBase
from pathlib import Path
from typing import BinaryIO
from urllib.parse import parse_qs, quote, unquote, urlsplit
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from tests.cluster.servers import free_port, wait_for

_CONTROL = "/.control"
_MARKER = ".directory-marker"
"""File of an object whose key ends with a slash."""

_PAGE = 1000
"""Number of keys in an answer to a list request, as S3 limits it."""


@dataclass(frozen=True)
class Requests:
    """Requests of a store since it started, and bytes of objects that it sent."""

    number: int = 0
    bytes: int = 0

    def __sub__(self, before: Requests) -> Requests:
        return Requests(self.number - before.number, self.bytes - before.bytes)


@dataclass(frozen=True)
class SlowStore:
    """Address of a store that runs, and its controls, which neither wait nor count."""

    address: str

    def requests(self) -> Requests:
        """Return the requests since it started."""
        with urllib.request.urlopen(f"{self.address}{_CONTROL}", timeout=60) as answer:
            return Requests(**json.load(answer))

    def wait(self, seconds: float) -> None:
        """Let each request wait before it is answered."""
        request = urllib.request.Request(f"{self.address}{_CONTROL}", str(seconds).encode(), method="PUT")
        urllib.request.urlopen(request, timeout=60).close()


@contextlib.contextmanager
def slow_store(folder: Path) -> Iterator[SlowStore]:
    """Serve a folder, by a process of its own, while the block runs; no request waits yet."""
    folder.mkdir(parents=True, exist_ok=True)
    port = free_port()
    log = folder.with_suffix(".log")
    with log.open("w") as file:
        command = [sys.executable, "-m", "bench.slow_store", str(folder), str(port)]
        process = subprocess.Popen(command, stdout=file, stderr=file, cwd=Path(__file__).parents[1])
        try:
            wait_for(port, log)
            yield SlowStore(f"http://127.0.0.1:{port}")
        finally:
            process.kill()
            process.wait()


@dataclass
class _Objects:
    """Objects of the one bucket.

    Attributes:
        folder: where they lie.
        found: bytes of each and when it was written, by key.
        delay: seconds that each request waits.
        number, sent: requests, and bytes of objects that were sent.
        lock: guards all of these.
    """

    folder: Path
    found: dict[str, tuple[int, float]] = field(default_factory=dict)
    delay: float = 0.0
    number: int = 0
    sent: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        for path in self.folder.rglob("*"):
            if path.is_file():
                key = path.relative_to(self.folder).as_posix()
                self.found[key.removesuffix(_MARKER)] = (path.stat().st_size, path.stat().st_mtime)

    def path(self, key: str) -> Path:
        return self.folder / (key + _MARKER if key.endswith("/") else key)

    def put(self, key: str, write: Iterator[bytes]) -> None:
        path = self.path(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        parts = self.folder.with_name(f"{self.folder.name}.part-{threading.get_ident()}")
        with parts.open("wb") as file:
            for piece in write:
                file.write(piece)
        written = parts.stat()
        parts.replace(path)
        with self.lock:
            self.found[key] = (written.st_size, written.st_mtime)

    def delete(self, key: str) -> None:
        with self.lock:
            if self.found.pop(key, None) is not None:
                self.path(key).unlink(missing_ok=True)

    def listed(self, prefix: str, delimiter: str, after: str) -> tuple[list[str], list[str], str]:
        """Return keys, common prefixes, and the last name of a page that others follow; empty on the last page."""
        with self.lock:
            keys = sorted(key for key in self.found if key.startswith(prefix))
        names: dict[str, bool] = {}
        for key in keys:
            rest = key[len(prefix) :]
            is_folder = bool(delimiter) and delimiter in rest
            name = prefix + rest.split(delimiter)[0] + delimiter if is_folder else key
            if name > after and name not in names:
                if len(names) == _PAGE:
                    return _split(names, last=True)
                names[name] = is_folder
        return _split(names, last=False)


def _split(names: dict[str, bool], *, last: bool) -> tuple[list[str], list[str], str]:
    folders = [name for name, is_folder in names.items() if is_folder]
    return [name for name, is_folder in names.items() if not is_folder], folders, max(names) if last else ""


class _Handler(BaseHTTPRequestHandler):
    """Answers of S3 to the requests of one connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 1 << 16
    objects: _Objects

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Log no request."""

    def handle_one_request(self) -> None:
        """End the connection quietly if the client has closed it."""
        with contextlib.suppress(ConnectionError):
            super().handle_one_request()
            return
        self.close_connection = True

    def handle_expect_100(self) -> bool:
        """Let a client send its object at once; it would wait three seconds for an answer that stays in a buffer."""
        found = super().handle_expect_100()
        self.wfile.flush()
        return found

    def do_GET(self) -> None:
        """Answer with an object, a part of one, or a list."""
        if self.path == _CONTROL:
            counted = {"number": self.objects.number, "bytes": self.objects.sent}
            self._answer(200, json.dumps(counted).encode(), "application/json")
            return
        self._begin()
        if not self._key:
            self._list()
            return
        self._object(with_body=True)

    def do_HEAD(self) -> None:
        """Answer with the size of an object."""
        self._begin()
        if self._key:
            self._object(with_body=False)
        else:
            self._answer(200)

    def do_PUT(self) -> None:
        """Write an object, or copy another one."""
        if self.path == _CONTROL:
            self.objects.delay = float(b"".join(self._body()))
            self._answer(200)
            return
        self._begin()
        source = self.headers.get("x-amz-copy-source")
        if not source:
            self.objects.put(self._key, self._body())
            self._answer(200, etag=self._etag())
            return
        for _ in self._body():
            pass
        found = unquote(source).lstrip("/").partition("/")[2]
        if found not in self.objects.found:
            self._missing()
            return
        with self.objects.path(found).open("rb") as file:
            self.objects.put(self._key, iter(lambda: file.read(1 << 20), b""))
        copied = f"<ETag>{self._etag()}</ETag><LastModified>{_iso(time.time())}</LastModified>"
        self._xml(f"<CopyObjectResult>{copied}</CopyObjectResult>")

    def do_DELETE(self) -> None:
        """Delete an object."""
        self._begin()
        self.objects.delete(self._key)
        self._answer(204)

    def do_POST(self) -> None:
        """Delete the objects of a list; uploads in parts are refused, so that a client must not need them."""
        self._begin()
        body = b"".join(self._body())
        if "delete" not in self._query:
            self._error(501, "NotImplemented")
            return
        keys = [key.text or "" for key in ElementTree.fromstring(body).iter() if key.tag.endswith("Key")]
        for key in keys:
            self.objects.delete(key)
        deleted = "".join(f"<Deleted><Key>{escape(key)}</Key></Deleted>" for key in keys)
        self._xml(f"<DeleteResult>{deleted}</DeleteResult>")

    def _begin(self) -> None:
        with self.objects.lock:
            self.objects.number += 1
        time.sleep(self.objects.delay)
        parts = urlsplit(self.path)
        self._key = unquote(parts.path).lstrip("/").partition("/")[2]
        self._query = {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}

    def _body(self) -> Iterator[bytes]:
        """Yield the bytes of a request, without the lines by which AWS's client signs its pieces."""
        if "x-amz-decoded-content-length" not in self.headers:
            left = int(self.headers.get("Content-Length") or 0)
            while left:
                piece = self.rfile.read(min(left, 1 << 20))
                if not piece:
                    msg = "the client ended within an object"
                    raise ConnectionError(msg)
                left -= len(piece)
                yield piece
            return
        while size := int(self.rfile.readline().split(b";")[0], 16):
            yield self.rfile.read(size)
            self.rfile.readline()
        while self.rfile.readline().strip():  # sums behind the last piece
            pass

    def _object(self, *, with_body: bool) -> None:
        if self._key not in self.objects.found:
            self._missing()
            return
        size, written = self.objects.found[self._key]
        first, stop, is_part = 0, size, False
        asked = self.headers.get("Range", "")
        if asked.startswith("bytes="):
            low, _, high = asked.removeprefix("bytes=").partition("-")
            is_part = True
            first = int(low) if low else max(0, size - int(high))
            stop = min(size, int(high) + 1) if low and high else size
            if first >= size:
                self._error(416, "InvalidRange")
                return
        self.send_response(206 if is_part else 200)
        if is_part:
            self.send_header("Content-Range", f"bytes {first}-{stop - 1}/{size}")
        self.send_header("Content-Length", str(stop - first))
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Last-Modified", formatdate(written, usegmt=True))
        self.send_header("ETag", self._etag())
        self.end_headers()
        if with_body:
            with self.objects.lock:
                self.objects.sent += stop - first
            with self.objects.path(self._key).open("rb") as file:
                file.seek(first)
                _copy(file, self.wfile, stop - first)

    def _list(self) -> None:
        query = self._query
        after = query.get("continuation-token") or query.get("start-after", "")
        keys, folders, last = self.objects.listed(query.get("prefix", ""), query.get("delimiter", ""), after)
        shown = (lambda text: quote(text, safe="/")) if query.get("encoding-type") == "url" else escape
        parts = [f"<Name>warehouse</Name><KeyCount>{len(keys) + len(folders)}</KeyCount><MaxKeys>{_PAGE}</MaxKeys>"]
        parts.append(f"<Prefix>{shown(query.get('prefix', ''))}</Prefix>")
        parts.append(f"<IsTruncated>{str(bool(last)).lower()}</IsTruncated>")
        parts += ["<EncodingType>url</EncodingType>"] if "encoding-type" in query else []
        parts += [f"<NextContinuationToken>{escape(last)}</NextContinuationToken>"] if last else []
        for key in keys:
            size, written = self.objects.found.get(key, (0, 0.0))
            parts.append(
                f"<Contents><Key>{shown(key)}</Key><LastModified>{_iso(written)}</LastModified>"
                f"<ETag>{_etag(key, size)}</ETag><Size>{size}</Size><StorageClass>STANDARD</StorageClass></Contents>"
            )
        parts += [f"<CommonPrefixes><Prefix>{shown(name)}</Prefix></CommonPrefixes>" for name in folders]
        self._xml(f"<ListBucketResult>{''.join(parts)}</ListBucketResult>")

    def _etag(self) -> str:
        return _etag(self._key, self.objects.found.get(self._key, (0, 0.0))[0])

    def _missing(self) -> None:
        self._error(404, "NoSuchKey")

    def _error(self, status: int, code: str) -> None:
        self._answer(status, f"<Error><Code>{code}</Code><Message>{code}</Message></Error>".encode(), "application/xml")

    def _xml(self, text: str) -> None:
        self._answer(200, f'<?xml version="1.0" encoding="UTF-8"?>{text}'.encode(), "application/xml")

    def _answer(self, status: int, body: bytes = b"", kind: str = "text/plain", etag: str = "") -> None:
        self.send_response(status)
        if status != 204:
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Content-Type", kind)
        if etag:
            self.send_header("ETag", etag)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def _iso(moment: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(moment))


def _etag(key: str, size: int) -> str:
    return f'"{hash(key) & 0xFFFFFFFF:08x}{size:x}"'


def _copy(source: BinaryIO, target: BufferedIOBase, size: int) -> None:
    if size <= 1 << 20:
        target.write(source.read(size))
        return
    for first in range(0, size, 1 << 20):
        target.write(source.read(min(1 << 20, size - first)))


def serve(folder: Path, port: int) -> None:
    """Serve a folder until the process ends."""
    for part in folder.parent.glob(f"{folder.name}.part-*"):
        part.unlink()
    handler = type("Handler", (_Handler,), {"objects": _Objects(folder)})
    server = ThreadingHTTPServer(("127.0.0.1", port), handler)
    server.daemon_threads = True
    server.serve_forever()


if __name__ == "__main__":
    serve(Path(sys.argv[1]), int(sys.argv[2]))
