"""A REST catalog of views in this process."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from uuid import uuid4

from tests.support.servers.serving import serving

_VIEWS = "/v1/{prefix}/namespaces/{namespace}/views"
_ENDPOINTS = [f"GET {_VIEWS}/{{view}}", f"POST {_VIEWS}", f"POST {_VIEWS}/{{view}}"]

Answer = tuple[int, dict[str, Any]]


@dataclass(slots=True)
class ViewServer:
    uri: str = ""
    views: dict[str, dict[str, Any]] = field(default_factory=dict)
    refusals: list[int] = field(default_factory=list)
    changes: list[dict[str, Any]] = field(default_factory=list)

    def answer(self, path: str, asked: dict[str, Any] | None) -> Answer:
        if path.startswith("/v1/config"):
            return 200, {"defaults": {}, "overrides": {}, "endpoints": _ENDPOINTS}
        if asked is None:
            return self._found(path)
        if self.refusals:
            status = self.refusals.pop(0)
            return status, {"error": {"message": "refused", "type": "AlreadyExistsException", "code": status}}
        self.changes.append(asked)
        return self._made(f"{path}/{asked['name']}", asked) if "name" in asked else self._replaced(path, asked)

    def _found(self, path: str) -> Answer:
        if path in self.views:
            return 200, {"metadata-location": "file:///view.json", "metadata": self.views[path]}
        return 404, {"error": {"message": "no such view", "type": "NoSuchViewException", "code": 404}}

    def _made(self, path: str, asked: dict[str, Any]) -> Answer:
        version = asked["view-version"]
        self.views[path] = {
            "view-uuid": str(uuid4()),
            "format-version": 1,
            "location": "file:///views",
            "schemas": [asked["schema"] | {"schema-id": 0}],
            "current-version-id": version["version-id"],
            "versions": [version],
            "version-log": [{"timestamp-ms": version["timestamp-ms"], "version-id": version["version-id"]}],
            "properties": asked["properties"],
        }
        return self._found(path)

    def _replaced(self, path: str, asked: dict[str, Any]) -> Answer:
        view = self.views[path]
        assert asked["requirements"] == [{"type": "assert-view-uuid", "uuid": view["view-uuid"]}]
        schema_id = len(view["schemas"])
        for update in asked["updates"]:
            match update["action"]:
                case "add-schema":
                    view["schemas"].append(update["schema"] | {"schema-id": schema_id})
                case "add-view-version":
                    view["versions"].append(update["view-version"] | {"schema-id": schema_id})
                case "set-current-view-version":
                    view["current-version-id"] = view["versions"][update["view-version-id"]]["version-id"]
                case "set-properties":
                    view["properties"] |= update["updates"]
        return self._found(path)


@contextmanager
def view_server() -> Iterator[ViewServer]:
    server = ViewServer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._tell(server.answer(self.path, None))

        def do_POST(self) -> None:
            loads = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self._tell(server.answer(self.path, loads))

        def _tell(self, answer: Answer) -> None:
            self.send_response(answer[0])
            self.end_headers()
            self.wfile.write(json.dumps(answer[1]).encode())

        def log_message(self, *_: object) -> None:
            pass

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    with serving(listening):
        server.uri = f"http://127.0.0.1:{listening.server_port}"
        yield server
