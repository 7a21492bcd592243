"""An HTTP proxy in front of a REST catalog that loses, delays, repeats or changes the answers to commits."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import Enum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Empty, SimpleQueue

import requests

_COMMIT = re.compile(r"/namespaces/[^/]+/tables/[^/]+$")
_HOPS = {"connection", "content-length", "host", "transfer-encoding", "content-encoding"}


class Fault(Enum):
    """What becomes of a commit's request or answer."""

    LOSE_REQUEST = "the connection ends before the catalog hears of it"
    LOSE_ANSWER = "the catalog does it, the connection ends"
    SILENCE = "the catalog does it, nobody says so in time"
    ANSWER_504 = "the catalog does it, a gateway says it timed out"
    ANSWER_409 = "the catalog does it, a repeated delivery is told of a conflict"
    DELIVER_TWICE = "the catalog hears it twice, its second answer counts"
    REFUSE_503 = "a gateway says the service is away, the catalog never hears of it"


class LossyProxy(ThreadingHTTPServer):
    """`faults` befall the next commits in order, then everything passes; `gathering` holds commits back for rivals."""

    daemon_threads = True

    def __init__(self, target: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.uri = f"http://127.0.0.1:{self.server_port}"
        self.target = target
        self.faults: SimpleQueue[Fault] = SimpleQueue()
        self.gathering: threading.Barrier | None = None
        self.commits = 0
        self.silence_seconds = 4.0

    def next_fault(self) -> Fault | None:
        self.commits += 1
        if self.gathering is not None:
            with suppress(threading.BrokenBarrierError):
                self.gathering.wait(2.0)
        try:
            return self.faults.get_nowait()
        except Empty:
            return None


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: LossyProxy
    body: bytes

    def handle_any(self) -> None:
        self.body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        commit = self.command == "POST" and _COMMIT.search(self.path)
        fault = self.server.next_fault() if commit else None
        if fault in {None, Fault.DELIVER_TWICE}:
            answer = self.forward()
            answer = self.forward() if fault else answer
            self.answer(answer.status_code, answer.content, dict(answer.headers))
            return
        if fault not in {Fault.LOSE_REQUEST, Fault.REFUSE_503}:
            self.forward()
        match fault:
            case Fault.ANSWER_504:
                self.fail(504, "GatewayTimeout")
            case Fault.ANSWER_409:
                self.fail(409, "CommitFailedException")
            case Fault.REFUSE_503:
                self.fail(503, "ServiceUnavailable")
            case Fault.SILENCE:
                time.sleep(self.server.silence_seconds)
                self.close_connection = True
            case _:
                self.close_connection = True

    do_GET = do_POST = do_HEAD = do_DELETE = handle_any  # noqa: N815 - http.server's names

    def forward(self) -> requests.Response:
        headers = {name: value for name, value in self.headers.items() if name.lower() not in _HOPS}
        url = self.server.target + self.path
        return requests.request(self.command, url, data=self.body, headers=headers, timeout=30)

    def answer(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            if name.lower() not in _HOPS:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def fail(self, status: int, kind: str) -> None:
        error = {"message": "by the proxy", "type": kind, "code": status}
        self.answer(status, json.dumps({"error": error}).encode())

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def lossy_proxy(target: str) -> Iterator[LossyProxy]:
    """A proxy on a free port of this machine."""
    with LossyProxy(target) as proxy:
        thread = threading.Thread(target=proxy.serve_forever)
        thread.start()
        try:
            yield proxy
        finally:
            proxy.shutdown()
            thread.join()
