"""A schema registry in this process: Confluent's REST API for reads, with faults.

API: docs.confluent.io/platform/current/schema-registry/develop/api.html. Contexts:
docs.confluent.io/platform/current/schema-registry/schema-linking-cp.html. Apicurio and Karapace lack contexts,
and Apicurio lacks `format` (ccompat/v7; `src/karapace/api/routers`).
"""

from __future__ import annotations

import base64
import hashlib
import json
import ssl
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from urllib.parse import parse_qsl, unquote, urlsplit
from uuid import UUID

from tests.support.servers.serving import serving

NO_SUBJECT, NO_VERSION, NO_SCHEMA = 40401, 40402, 40403


class FakeRegistry:
    """`faults` are statuses of the next answers; while `down`, connections end.

    `refuses` maps beginnings of parameters and paths to statuses.
    """

    def __init__(self, address: tuple[str, int], scheme: str = "http") -> None:
        self.url = f"{scheme}://{address[0]}:{address[1]}/apis/ccompat/v7"
        self.down = False
        self.faults: list[int] = []
        self.retry_after: str | None = None
        self.asked: list[str] = []
        self.authorization: str | None = None
        self.has_contexts = True
        self.has_guids = True
        self.refuses: dict[str, int] = {}
        self._serialized: dict[str, str] = {}
        self._guids: dict[UUID, dict[str, Any]] = {}
        self._schemas: dict[tuple[str, int], dict[str, Any]] = {}
        self._subjects: dict[str, list[int]] = {}
        self._deleted: set[tuple[str, int]] = set()

    def register(
        self,
        subject: str,
        text: str,
        references: Sequence[tuple[str, str, int]] = (),
        *,
        kind: str | None = "PROTOBUF",
        schema_id: int | None = None,
        guid: UUID | None = None,
        serialized: str | None = None,
    ) -> int:
        """References are (name, subject, version); `serialized` answers `format=serialized`."""
        number = schema_id or 100_001 + len(self._schemas)
        named = [dict(zip(("name", "subject", "version"), reference, strict=True)) for reference in references]
        schema = {"schema": text, "references": named} | ({"schemaType": kind} if kind else {})
        self._schemas[self._context(subject), number] = schema
        if serialized is not None:
            self._serialized[text] = serialized
        self._guids[guid or _guid(schema)] = schema
        self._subjects.setdefault(subject, []).append(number)
        return number

    def guid(self, subject: str) -> UUID:
        latest = self._schemas[self._context(subject), self._subjects[subject][-1]]
        return next(guid for guid, schema in self._guids.items() if schema == latest)

    def delete(self, subject: str, version: int | None = None) -> None:
        count = len(self._subjects[subject])
        self._deleted |= {(subject, at) for at in range(1, count + 1) if version in {None, at}}

    def destroy(self, subject: str) -> None:
        """Delete for good, even if schemas refer to it."""
        del self._subjects[subject]

    def answer(self, path: str, headers: Mapping[str, str]) -> tuple[int, Any]:
        self.asked.append(path)
        if self.faults:
            return self.faults.pop(0), {"error_code": 50001, "message": "on purpose"}
        if self.authorization is not None and headers.get("Authorization") != self.authorization:
            return 401, {"error_code": 40101, "message": "who are you?"}
        parts, query = urlsplit(path).path.split("/")[4:], dict(parse_qsl(urlsplit(path).query))
        for refused, status in self.refuses.items():
            if refused in query or "/".join(parts).startswith(refused):
                return status, "not here"
        context = ""
        if self.has_contexts and parts[0] == "contexts" and len(parts) > 1:
            context, parts = f":{parts[1]}:", parts[2:]
        status, body = self._answer([unquote(part) for part in parts], query, context)
        if query.get("format") == "serialized" and isinstance(body, dict) and body.get("schema") in self._serialized:
            body = {**body, "schema": self._serialized[body["schema"]]}
        return status, body

    def _answer(self, parts: list[str], query: dict[str, str], context: str) -> tuple[int, Any]:  # noqa: PLR0911 - a table of answers
        match parts:
            case ["schemas", "types"]:
                return 200, ["JSON", "PROTOBUF", "AVRO"]
            case ["contexts"] if self.has_contexts:
                return 200, sorted({self._context(subject).strip(":") or "." for subject in self._subjects})
            case ["schemas", "ids", number]:
                result = self._by_id(int(number), self._qualified(query.get("subject", ""), context))
                return (200, result) if result else (404, {"error_code": NO_SCHEMA, "message": "Schema not found"})
            case ["schemas", "guids", guid] if self.has_guids:
                result = self._guids.get(UUID(guid))
                return (200, result) if result else (404, {"error_code": NO_SCHEMA, "message": "Schema not found"})
            case ["subjects", subject, "versions"]:
                versions = self._versions(self._qualified(subject, context), query.get("deleted") == "true")
                return (200, versions) if versions else (404, {"error_code": NO_SUBJECT, "message": "no subject"})
            case ["subjects", subject, "versions", version]:
                return self._version(self._qualified(subject, context), version, query.get("deleted") == "true")
            case _:
                return 404, "no such page"

    def _versions(self, subject: str, with_deleted: bool) -> list[int]:
        versions = range(1, len(self._subjects.get(subject, ())) + 1)
        return [at for at in versions if with_deleted or (subject, at) not in self._deleted]

    def _version(self, subject: str, version: str, with_deleted: bool) -> tuple[int, Any]:
        ids, present = self._subjects.get(subject, []), self._versions(subject, with_deleted)
        if not present:
            return 404, {"error_code": NO_SUBJECT, "message": "Subject not found"}
        at = present[-1] if version == "latest" else int(version)
        if at not in present:
            return 404, {"error_code": NO_VERSION, "message": "Version not found"}
        schema = self._schemas[self._context(subject), ids[at - 1]]
        return 200, {"subject": subject, "version": at, "id": ids[at - 1], **schema}

    def _by_id(self, number: int, subject: str) -> dict[str, Any] | None:
        """In Confluent, a subject in a named context finds only its own schemas."""
        context = self._context(subject)
        if not self.has_contexts or subject == context:
            return self._schemas.get((context, number))
        if number in self._subjects.get(subject, ()):
            return self._schemas[context, number]
        if context:
            return None
        named = (name for name in self._subjects if name.endswith(f":{subject}") and number in self._subjects[name])
        return self._schemas.get((self._context(next(named, "")), number))

    def _context(self, subject: str) -> str:
        if not self.has_contexts or not subject.startswith(":."):
            return ""
        return f":{subject[1:].partition(':')[0]}:"

    def _qualified(self, subject: str, context: str) -> str:
        return subject if subject.startswith(":.") else context + subject


def _guid(schema: Mapping[str, Any]) -> UUID:
    return UUID(bytes=hashlib.md5(json.dumps(schema, sort_keys=True).encode(), usedforsecurity=False).digest())


@contextmanager
def fake_registry(tls: ssl.SSLContext | None = None) -> Iterator[FakeRegistry]:
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
