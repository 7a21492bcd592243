"""The HTTP listener for operators: `/metrics` for Prometheus, `/health`, `/health/live` and `/health/ready`.

Health answers 200 or 503 with a JSON object that gives the reasons. Nothing secret is served; bind it where only
operators reach it.
"""

from __future__ import annotations

import json
import threading
from dataclasses import asdict
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from prometheus_client import CONTENT_TYPE_LATEST

from archiver.errors import ConfigError
from archiver.metrics.health import Health
from archiver.metrics.instruments import Instruments


class Listener:
    """Serves on `host:port` (0: any free port) from threads of its own. A context manager."""

    def __init__(self, host: str, port: int, *, instruments: Instruments, health: Health) -> None:
        try:
            self._server = _Server((host, port), instruments, health)
        except OSError as error:
            raise ConfigError(
                f"The address can't be listened on: {error.strerror}", key="metrics.listen", address=f"{host}:{port}"
            ) from error
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.2}, name="metrics", daemon=True
        )

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens."""
        host, port = self._server.server_address[:2]
        return str(host), int(port)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, address: tuple[str, int], instruments: Instruments, health: Health) -> None:
        self.instruments = instruments
        self.health = health
        super().__init__(address, _Handler)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    server_version = "archiver"
    sys_version = ""

    def do_GET(self) -> None:
        """Answer a request; the base class finds this by its name."""
        path = self.path.partition("?")[0].rstrip("/")
        report = self.server.health.report()
        match path:
            case "/metrics":
                self._answer(HTTPStatus.OK, CONTENT_TYPE_LATEST, self.server.instruments.text())
            case "/health":
                self._tell(report.live and report.ready, asdict(report))
            case "/health/live":
                self._tell(report.live, asdict(report))
            case "/health/ready":
                self._tell(report.ready, asdict(report))
            case _:
                self._answer(HTTPStatus.NOT_FOUND, "text/plain", b"/metrics, /health, /health/live, /health/ready\n")

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class names it
        """Say nothing: probes come every few seconds."""

    def _tell(self, good: bool, report: dict[str, Any]) -> None:
        status = HTTPStatus.OK if good else HTTPStatus.SERVICE_UNAVAILABLE
        self._answer(status, "application/json", json.dumps(report).encode() + b"\n")

    def _answer(self, status: HTTPStatus, content_type: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
