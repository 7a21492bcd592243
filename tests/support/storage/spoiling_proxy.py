"""A proxy to an S3 store that records upload headers, spoils bytes and refuses."""

from __future__ import annotations

import http.client
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import BinaryIO
from urllib.parse import urlsplit

from tests.support.servers.serving import serving
from tests.support.storage.demanding_store import Demands

_DENIED = b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"
_OURS = frozenset(("transfer-encoding", "connection", "content-length"))


@dataclass
class Spoiling:
    target: str
    endpoint: str = ""
    spoil: Callable[[bytes], bytes] = bytes
    refusals: int = 0
    """The number of the next uploads to answer with 503."""
    keeps: bool = False
    """Removals are answered as by a store whose policy denies them."""
    demands: Demands = field(default_factory=Demands)
    refused: list[str] = field(default_factory=list)
    """The paths of requests that were refused for lack of what is demanded."""
    uploads: list[dict[str, str]] = field(default_factory=list)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    spoiling: Spoiling

    def do_PUT(self) -> None:
        body = self._body()
        headers = self._lower_headers()
        self.spoiling.uploads.append(headers)
        if (refusal := self.spoiling.demands.refusal(self.command, self.path, headers)) is not None:
            self.spoiling.refused.append(self.path)
            self._answer(refusal[0], [("Content-Type", "application/xml")], refusal[1])
        elif self.spoiling.refusals > 0:
            self.spoiling.refusals -= 1
            self._answer(503, [], b"")
        else:
            self._pass(self.spoiling.spoil(body))

    def do_GET(self) -> None:
        self._pass(self._body())

    def do_DELETE(self) -> None:
        body = self._body()
        if self.spoiling.keeps:
            self._answer(403, [("Content-Type", "application/xml")], _DENIED)
        else:
            self._pass(body)

    def do_POST(self) -> None:
        body = self._body()
        if (refusal := self.spoiling.demands.refusal(self.command, self.path, self._lower_headers())) is not None:
            self.spoiling.refused.append(self.path)
            self._answer(refusal[0], [("Content-Type", "application/xml")], refusal[1])
        else:
            self._pass(body)

    do_HEAD = do_GET  # noqa: N815 - the name that the base class looks for

    def _lower_headers(self) -> dict[str, str]:
        return {name.lower(): value for name, value in self.headers.items()}

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") == "chunked":
            return b"".join(_chunks(self.rfile))
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _pass(self, body: bytes) -> None:
        connection = http.client.HTTPConnection(urlsplit(self.spoiling.target).netloc, timeout=30)
        try:
            connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                if name.lower() != "expect":
                    connection.putheader(name, value)
            connection.endheaders(body or None, encode_chunked="Transfer-Encoding" in self.headers)
            result = connection.getresponse()
            self._answer(result.status, result.getheaders(), result.read())
        finally:
            connection.close()

    def _answer(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        self.send_response_only(status)
        of_head = self.command == "HEAD"
        for name, value in headers:
            if name.lower() not in _OURS or (of_head and name.lower() == "content-length"):
                self.send_header(name, value)
        if not of_head:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def _chunks(stream: BinaryIO) -> Iterator[bytes]:
    while size := int(stream.readline().partition(b";")[0], 16):
        yield stream.read(size)
        stream.readline()
    stream.readline()


@contextmanager
def spoiling_proxy(target: str) -> Iterator[Spoiling]:
    spoiling = Spoiling(target)
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"spoiling": spoiling}))
    server.daemon_threads = True
    spoiling.endpoint = f"http://127.0.0.1:{server.server_port}"
    with serving(server):
        yield spoiling
