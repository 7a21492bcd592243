"""Servers in a thread of this process."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socketserver import BaseServer
from typing import TypeVar

Server = TypeVar("Server", bound=BaseServer)


@contextmanager
def serving(server: Server) -> Iterator[Server]:
    with server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


class _TlsServer(ThreadingHTTPServer):
    def handle_error(self, *_: object) -> None:
        """Clients that end a handshake are expected."""


@contextmanager
def answering(
    status: int,
    body: object,
    *,
    after_seconds: float = 0.0,
    headers: Mapping[str, str] | None = None,
    certificate: tuple[Path, Path] | None = None,
    clients_of: Path | None = None,
) -> Iterator[str]:
    """Clients need certificates of `clients_of`."""
    over = threading.Event()

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            over.wait(after_seconds)
            self.send_response(status)
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(json.dumps(body).encode())

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.do_GET()

        def log_message(self, *_: object) -> None:
            pass

    server = (ThreadingHTTPServer if certificate is None else _TlsServer)(("127.0.0.1", 0), Answer)
    if certificate is not None:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=clients_of)
        context.load_cert_chain(*certificate)
        context.verify_mode = ssl.CERT_NONE if clients_of is None else ssl.CERT_REQUIRED
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    with serving(server):
        try:
            yield f"http{'s' if certificate else ''}://127.0.0.1:{server.server_port}"
        finally:
            over.set()
