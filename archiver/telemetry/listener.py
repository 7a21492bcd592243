"""`/metrics` for Prometheus, `/health`, `/health/live`, `/health/ready` or `/ready`.

Health answers 200 or 503 with JSON. If all workers are busy, the longest silent connection is dropped.
"""

from __future__ import annotations

import io
import json
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, Final, Protocol, Self

from prometheus_client import CONTENT_TYPE_LATEST

from archiver.errors import ConfigError
from archiver.telemetry.health import Report

WORKERS: Final = 8
"""How many connections are served at a time."""
REQUEST_SECONDS: Final = 5.0
"""How long the whole request may take to arrive."""
ANSWER_SECONDS: Final = 10.0
"""How long a client may take to receive an answer."""
_REQUEST_BYTES: Final = 16 << 10
_END: Final = b"\r\n\r\n"


class HealthSource(Protocol):
    def report(self) -> Report: ...


class MetricsSource(Protocol):
    def text(self) -> bytes: ...


class Listener:
    """Uses background threads; port 0: any free port."""

    def __init__(
        self,
        host: str,
        port: int,
        *,
        instruments: MetricsSource,
        health: HealthSource,
        request_seconds: float = REQUEST_SECONDS,
        key: str = "metrics.listen",
    ) -> None:
        """Raises ConfigError, which names the `key`, if the address can't be bound."""
        try:
            self._server = _Server((host, port), instruments, health, request_seconds)
        except OSError as error:
            raise ConfigError(
                f"The server can't listen on this address: {error.strerror}", key=key, address=f"{host}:{port}"
            ) from error
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.2}, name="metrics", daemon=True
        )

    @property
    def address(self) -> tuple[str, int]:
        host, port = self._server.server_address[:2]
        return str(host), int(port)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Server(HTTPServer):
    allow_reuse_address = True
    request_queue_size = 32

    def __init__(
        self, address: tuple[str, int], instruments: MetricsSource, health: HealthSource, request_seconds: float
    ) -> None:
        self.instruments = instruments
        self.health = health
        self.request_seconds = request_seconds
        self._lock = threading.Lock()
        self._open: dict[socket.socket, bool] = {}  # in the order they came; True once the request is whole
        self._pool = ThreadPoolExecutor(WORKERS, thread_name_prefix="metrics")
        super().__init__(address, _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            if len(self._open) >= WORKERS:
                silent = next((connection for connection, is_whole in self._open.items() if not is_whole), None)
                if silent is None:
                    self.shutdown_request(request)
                    return
                del self._open[silent]
                _hang_up(silent)
            self._open[request] = False
        self._pool.submit(self._serve, request, client_address)

    def request_is_whole(self, request: socket.socket) -> None:
        with self._lock:
            if request in self._open:
                self._open[request] = True

    def server_close(self) -> None:
        super().server_close()
        with self._lock:
            for connection in self._open:
                _hang_up(connection)
        self._pool.shutdown(cancel_futures=True)

    def _serve(self, request: socket.socket, client_address: Any) -> None:
        try:
            with suppress(OSError):  # it hung up, or was too slow
                self.finish_request(request, client_address)
        finally:
            with self._lock:
                self._open.pop(request, None)
            self.shutdown_request(request)


def _hang_up(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    server_version = "archiver"
    sys_version = ""
    timeout = ANSWER_SECONDS

    def setup(self) -> None:
        """Raises TimeoutError if the request isn't complete in time."""
        super().setup()
        head = self._head()
        self.connection.settimeout(ANSWER_SECONDS)
        self.rfile = io.BufferedReader(io.BytesIO(head))
        self.server.request_is_whole(self.connection)

    def do_GET(self) -> None:
        path = self.path.partition("?")[0].rstrip("/")
        report = self.server.health.report()
        match path:
            case "/metrics":
                self._answer(HTTPStatus.OK, CONTENT_TYPE_LATEST, self.server.instruments.text())
            case "/health":
                self._tell(report.live and report.ready, asdict(report))
            case "/health/live":
                self._tell(report.live, asdict(report))
            case "/health/ready" | "/ready":
                self._tell(report.ready, asdict(report))
            case "":
                from archiver.telemetry.status_page import status_page

                page = status_page(report, self.server.instruments.text())
                self._answer(HTTPStatus.OK, "text/html; charset=utf-8", page.encode())
            case _:
                self._answer(HTTPStatus.NOT_FOUND, "text/plain", b"/, /metrics, /health, /health/live, /health/ready\n")

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class names it
        """Probes come every few seconds."""

    def _head(self) -> bytes:
        deadline = time.monotonic() + self.server.request_seconds
        head = b""
        while _END not in head and len(head) < _REQUEST_BYTES:
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError
            self.connection.settimeout(left)
            part = self.connection.recv(_REQUEST_BYTES)
            if not part:
                break
            head += part
        return head

    def _tell(self, good: bool, report: dict[str, Any]) -> None:
        status = HTTPStatus.OK if good else HTTPStatus.SERVICE_UNAVAILABLE
        self._answer(status, "application/json", json.dumps(report).encode() + b"\n")

    def _answer(self, status: HTTPStatus, content_type: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
