"""An OpenID Connect endpoint with unsecured tokens, for Kafka's test validator."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

from tests.support.servers.serving import serving


def unsecured_token(subject: str, life_seconds: float, scope: str | None = None) -> str:
    now = time.time()
    claims = {"sub": subject, "iat": now, "exp": now + life_seconds} | ({"scope": scope} if scope else {})
    return f"{_encoded({'alg': 'none'})}.{_encoded(claims)}."


def _encoded(value: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


@dataclass
class TokenEndpoint:
    clients: dict[str, str]
    life_seconds: float = 3_600.0
    status: int = 200
    asked: list[dict[str, list[str]]] = field(default_factory=list)
    url: str = ""

    def answer(self, authorization: str, form: dict[str, list[str]]) -> tuple[int, dict[str, Any]]:
        self.asked.append(form)
        client, _, secret = base64.b64decode(authorization.removeprefix("Basic ")).decode().partition(":")
        if self.clients.get(client) != secret or form.get("grant_type") != ["client_credentials"]:
            return 401, {"error": "invalid_client", "error_description": "who are you?"}
        if self.status != 200:
            return self.status, {"error": "temporarily_unavailable"}
        token = unsecured_token(client, self.life_seconds, (form.get("scope") or [None])[0])
        return 200, {"access_token": token, "token_type": "Bearer", "expires_in": self.life_seconds}


@contextmanager
def token_endpoint(clients: dict[str, str]) -> Iterator[TokenEndpoint]:
    endpoint = TokenEndpoint(clients)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            status, answer = endpoint.answer(self.headers["Authorization"], form)
            body = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    endpoint.url = f"http://127.0.0.1:{server.server_address[1]}/token"
    with serving(server):
        yield endpoint
