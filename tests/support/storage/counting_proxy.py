"""A proxy to an S3 store that records reads.

A separate process: a client that waits with Python's lock held would block it.
"""

from __future__ import annotations

import http.client
import itertools
import json
import multiprocessing
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final, TextIO
from urllib.parse import unquote, urlsplit

from tests.support.timing.eventually import eventually

_OURS: Final = frozenset(("transfer-encoding", "connection", "content-length"))
_PIECE: Final = 16 << 10
_SEND_BUFFER: Final = 32 << 10
"""Small: bytes that were sent to a client which has hung up count as read."""
_RANGE: Final = re.compile(r"bytes (\d+)-(\d+)/(\d+)")
_STARTS_IN: Final = 30.0
_SETTLES_IN: Final = 10.0


@dataclass(frozen=True, slots=True)
class Read:
    path: str
    start: int
    end: int
    size: int


class CountingProxy:
    def __init__(self, endpoint: str, log: Path) -> None:
        self.endpoint = endpoint
        self._log = log

    def mark(self) -> int:
        return self._log.stat().st_size

    def since(self, mark: int) -> list[Read]:
        """Waits for open answers."""

        def settled() -> dict[int, tuple[str, int, int, int] | None] | None:
            begun, ended = self._noted(mark)
            return None if begun - ended.keys() else {**ended, -1: None}  # true without any reads

        ended = eventually(settled, "a client reads on or hangs up", seconds=_SETTLES_IN)
        return [Read(*value) for value in (ended or {}).values() if value is not None]

    def _noted(self, mark: int) -> tuple[set[int], dict[int, tuple[str, int, int, int] | None]]:
        begun: set[int] = set()
        ended: dict[int, tuple[str, int, int, int] | None] = {}
        with self._log.open(encoding="utf-8") as file:
            file.seek(mark)
            for line in file:
                number, read = json.loads(line)
                if read == "begun":
                    begun.add(number)
                else:
                    ended[number] = read
        return begun, ended


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, target: str, log: TextIO) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.target = urlsplit(target).netloc
        self.numbers = itertools.count()
        self._log = log
        self._lock = threading.Lock()

    def note(self, number: int, what: object) -> None:
        with self._lock:
            self._log.write(json.dumps([number, what]) + "\n")
            self._log.flush()

    def handle_error(self, *_: object) -> None:
        pass  # clients hang up when they have read enough


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def setup(self) -> None:
        self.request.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)
        super().setup()

    def do_GET(self) -> None:
        number, read = next(self.server.numbers), None
        self.server.note(number, "begun")
        connection = http.client.HTTPConnection(self.server.target, timeout=30)
        try:
            read = self._pass(connection, self.rfile.read(int(self.headers.get("Content-Length") or 0)))
        finally:
            self.server.note(number, read)
            connection.close()

    do_POST = do_PUT = do_HEAD = do_DELETE = do_GET  # noqa: N815 - the names that the base class looks for

    def _pass(self, connection: http.client.HTTPConnection, body: bytes) -> tuple[str, int, int, int] | None:
        connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            connection.putheader(name, value)
        connection.endheaders(body or None)
        answer = connection.getresponse()
        length = int(answer.headers.get("Content-Length") or 0)
        self.send_response_only(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in _OURS:
                self.send_header(name, value)
        has_content = self.command != "HEAD"
        content = b"" if has_content and "Content-Length" in answer.headers else answer.read()
        self.send_header("Content-Length", str(length or len(content)))
        self.end_headers()
        sent = len(content)
        self.wfile.write(content)
        try:
            while piece := answer.read(_PIECE):
                self.wfile.write(piece)
                sent += len(piece)
        except OSError:
            self.close_connection = True
        return self._read(answer, sent) if self.command == "GET" and answer.status in (200, 206) else None

    def _read(self, answer: http.client.HTTPResponse, sent: int) -> tuple[str, int, int, int]:
        result = _RANGE.match(answer.headers.get("Content-Range") or "")
        start, size = (
            (int(result[1]), int(result[3])) if result else (0, int(answer.headers.get("Content-Length") or sent))
        )
        return unquote(urlsplit(self.path).path), start, start + sent, size

    def log_message(self, *_: object) -> None:
        pass


def _serve(target: str, log: Path, told: Connection) -> None:
    with log.open("a", encoding="utf-8") as file, _Server(target, file) as server:
        told.send(server.server_port)
        server.serve_forever()


@contextmanager
def counting_proxy(target: str, folder: Path) -> Iterator[CountingProxy]:
    log = folder / "reads"
    log.touch()
    context = multiprocessing.get_context("spawn")
    local, present = context.Pipe(duplex=False)
    process = context.Process(target=_serve, args=(target, log, present), daemon=True)
    process.start()
    try:
        assert local.poll(_STARTS_IN), "the proxy did not start"
        yield CountingProxy(f"http://127.0.0.1:{local.recv()}", log)
    finally:
        process.terminate()
        process.join()
