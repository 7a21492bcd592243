"""A schema registry in this process: Confluent's REST API over HTTP, as far as reading goes, with faults on demand."""

from __future__ import annotations

import base64
import json
import ssl
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from urllib.parse import unquote

from tests.support.servers.serving import serving

NO_SUBJECT, NO_VERSION, NO_SCHEMA = 40401, 40402, 40403


class FakeRegistry:
    """What the server knows and does. `faults` are statuses to answer with before answers come,
    with `retry_after` where that goes along.

    While it is `down`, connections end without an answer, as behind a proxy; `asked` has what reached it otherwise.
    """

    def __init__(self, address: tuple[str, int], scheme: str = "http") -> None:
        self.url = f"{scheme}://{address[0]}:{address[1]}/apis/ccompat/v7"
        self.down = False
        self.faults: list[int] = []
        self.retry_after: str | None = None
        self.asked: list[str] = []
        self.authorization: str | None = None
        self._schemas: dict[int, dict[str, Any]] = {}
        self._subjects: dict[str, list[int]] = {}

    def register(
        self, subject: str, text: str, references: Sequence[tuple[str, str, int]] = (), *, kind: str | None = "PROTOBUF"
    ) -> int:
        """Add a version to a subject and return its id; a reference is (name, subject, version)."""
        number = 100_001 + len(self._schemas)
        named = [dict(zip(("name", "subject", "version"), each, strict=True)) for each in references]
        self._schemas[number] = {"schema": text, "references": named} | ({"schemaType": kind} if kind else {})
        self._subjects.setdefault(subject, []).append(number)
        return number

    def answer(self, path: str, headers: Mapping[str, str]) -> tuple[int, Any]:  # noqa: PLR0911 - a table of answers
        self.asked.append(path)
        if self.faults:
            return self.faults.pop(0), {"error_code": 50001, "message": "on purpose"}
        if self.authorization is not None and headers.get("Authorization") != self.authorization:
            return 401, {"error_code": 40101, "message": "who are you?"}
        match [unquote(part) for part in path.split("/")[4:]]:
            case ["schemas", "types"]:
                return 200, ["JSON", "PROTOBUF", "AVRO"]
            case ["schemas", "ids", number] if int(number) in self._schemas:
                return 200, self._schemas[int(number)]
            case ["schemas", "ids", _]:
                return 404, {"error_code": NO_SCHEMA, "message": "Schema not found"}
            case ["subjects", subject, "versions", _] if subject not in self._subjects:
                return 404, {"error_code": NO_SUBJECT, "message": "Subject not found"}
            case ["subjects", subject, "versions", version]:
                ids = self._subjects[subject]
                at = len(ids) if version == "latest" else int(version)
                if not 1 <= at <= len(ids):
                    return 404, {"error_code": NO_VERSION, "message": "Version not found"}
                return 200, {"subject": subject, "version": at, "id": ids[at - 1], **self._schemas[ids[at - 1]]}
            case _:
                return 404, "no such page"


@contextmanager
def fake_registry(tls: ssl.SSLContext | None = None) -> Iterator[FakeRegistry]:
    """A server on a free port, stopped at the end; it speaks HTTPS with `tls`."""

    class Handler(BaseHTTPRequestHandler):
        registry: ClassVar[FakeRegistry]

        def do_GET(self) -> None:
            if self.registry.down:
                self.close_connection = True
                return
            status, body = self.registry.answer(self.path, dict(self.headers))
            content = body.encode() if isinstance(body, str) else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            if status in (429, 503) and self.registry.retry_after is not None:
                self.send_header("Retry-After", self.registry.retry_after)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, *_: Any) -> None:
            pass

        def finish_request(self, request: Any, client_address: Any) -> None:
            if tls is not None:
                request = tls.wrap_socket(request, server_side=True)
            super().finish_request(request, client_address)
            request.close()

    server = Server(("127.0.0.1", 0), Handler)
    Handler.registry = FakeRegistry(("127.0.0.1", server.server_port), "https" if tls else "http")
    with serving(server):
        yield Handler.registry


def basic(username: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{username}:{password}".encode()).decode()
