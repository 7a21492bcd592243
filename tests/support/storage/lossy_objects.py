"""A forward proxy (`s3.proxy-uri`) that refuses, cuts, slows and loses requests.

It leaves addresses, and so signatures, unchanged.
"""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from tests.support.servers.serving import serving

_HOPS = {"connection", "proxy-connection", "content-length", "transfer-encoding", "expect", "keep-alive"}
_ERROR = '<?xml version="1.0" encoding="UTF-8"?><Error><Code>{code}</Code><Message>by the proxy</Message></Error>'


class ObjectFault(Enum):
    ERROR_500 = "the store says InternalError, and does nothing"
    SLOW_DOWN = "the store says SlowDown, and does nothing"
    DENIED = "the store says AccessDenied, and does nothing"
    CUT_UPLOAD = "the connection ends in the middle of an upload"
    CUT_DOWNLOAD = "the connection ends in the middle of an answer"
    LOSE_ANSWER = "the store has the upload, the connection ends"
    SILENCE = "the store has the upload, nobody says so in time"
    SLOW_LINK = "a few KB a second"
    NO_SUCH_KEY = "the store says NoSuchKey, as an empty one does, or one of another endpoint"
    NO_SUCH_BUCKET = "the store says NoSuchBucket"

    @property
    def methods(self) -> frozenset[str]:
        match self:
            case ObjectFault.CUT_DOWNLOAD:
                return frozenset({"GET"})
            case ObjectFault.NO_SUCH_KEY | ObjectFault.NO_SUCH_BUCKET:
                return frozenset({"GET", "HEAD"})
            case _:
                return frozenset({"PUT", "POST"})


class LossyStore(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.uri = f"http://127.0.0.1:{self.server_port}"
        self.struck = 0
        self.silence_seconds = 8.0
        self.is_over = threading.Event()
        self.bytes_per_second = 100_000
        self._lock = threading.Lock()
        self._fault: ObjectFault | None = None
        self._skip = self._times = 0

    def server_close(self) -> None:
        self.is_over.set()
        super().server_close()

    def arm(self, fault: ObjectFault, *, times: int = 1, skip: int = 0) -> None:
        with self._lock:
            self._fault, self._times, self._skip = fault, times, skip

    def calm(self) -> None:
        with self._lock:
            self._fault = None

    def next_fault(self, method: str) -> ObjectFault | None:
        with self._lock:
            if self._fault is None or method not in self._fault.methods:
                return None
            if self._skip:
                self._skip -= 1
                return None
            if not self._times:
                return None
            self._times -= 1
            self.struck += 1
            return self._fault

    def is_expired(self, request: BaseHTTPRequestHandler) -> bool:
        del request
        return False

    def handle_error(self, *_: object) -> None:
        pass  # killed clients hang up in the middle


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: LossyStore

    def handle_any(self) -> None:
        if self.server.is_expired(self):
            self.refuse(400, "ExpiredToken")
            return
        match fault := self.server.next_fault(self.command):
            case ObjectFault.CUT_UPLOAD:
                self.rfile.read(int(self.headers.get("Content-Length", "0")) // 2)
                self.close_connection = True
                return
            case ObjectFault.ERROR_500:
                self.refuse(500, "InternalError")
            case ObjectFault.SLOW_DOWN:
                self.refuse(503, "SlowDown")
            case ObjectFault.DENIED:
                self.refuse(403, "AccessDenied")
            case ObjectFault.NO_SUCH_KEY:
                self.refuse(404, "NoSuchKey")
            case ObjectFault.NO_SUCH_BUCKET:
                self.refuse(404, "NoSuchBucket")
            case _:
                self.pass_on(fault)

    do_GET = do_POST = do_PUT = do_HEAD = do_DELETE = handle_any  # noqa: N815 - http.server's names

    def pass_on(self, fault: ObjectFault | None) -> None:
        body = self.body()
        if fault is ObjectFault.SLOW_LINK:
            self.server.is_over.wait(min(5.0, len(body) / self.server.bytes_per_second))
        status, headers, content = self.forward(body)
        if status == 0:
            self.close_connection = True
            return
        match fault:
            case ObjectFault.LOSE_ANSWER:
                self.close_connection = True
                return
            case ObjectFault.SILENCE:
                self.server.is_over.wait(self.server.silence_seconds)
                self.close_connection = True
                return
            case _:
                pass
        length = headers.get("Content-Length", "0") if self.command == "HEAD" else str(len(content))
        self.send_response_only(status)
        for name, value in headers.items():
            if name.lower() not in _HOPS:
                self.send_header(name, value)
        self.send_header("Content-Length", length)
        self.end_headers()
        if fault is ObjectFault.CUT_DOWNLOAD:
            content = content[: len(content) // 2]
            self.close_connection = True
        self.wfile.write(content)

    def body(self) -> bytes:
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            return self.rfile.read(int(self.headers.get("Content-Length", "0")))
        pieces = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            pieces.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(pieces)

    def forward(self, body: bytes) -> tuple[int, dict[str, str], bytes]:
        """Status 0: the store doesn't answer."""
        url = urlsplit(self.path)
        connection = http.client.HTTPConnection(url.hostname or "", url.port, timeout=30)
        headers = {name: value for name, value in self.headers.items() if name.lower() not in _HOPS}
        target = url.path + (f"?{url.query}" if url.query else "")
        if body or self.command in {"PUT", "POST"}:
            headers["Content-Length"] = str(len(body))
        try:
            connection.putrequest(self.command, target, skip_host=True, skip_accept_encoding=True)
            for name, value in headers.items():
                connection.putheader(name, value)
            connection.endheaders(body or None)
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        except (OSError, http.client.HTTPException):
            return 0, {}, b""
        finally:
            connection.close()

    def refuse(self, status: int, code: str) -> None:
        self.body()
        text = b"" if self.command == "HEAD" else _ERROR.format(code=code).encode()
        self.send_response_only(status)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def lossy_store() -> Iterator[LossyStore]:
    with serving(LossyStore()) as proxy:
        yield proxy
