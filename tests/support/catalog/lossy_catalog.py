"""An HTTP proxy that loses, delays, repeats or changes answers to commits."""

from __future__ import annotations

import json
import re
import threading
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import Enum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Empty, SimpleQueue

import requests

from tests.support.servers.serving import serving

_TABLE = re.compile(r"/namespaces/[^/]+/tables/[^/]+$")
_S3_TABLES_NAME = re.compile(r"[a-z0-9]([a-z0-9_]{0,253}[a-z0-9])?")
_STATES = 6
"""How many states of a table are kept for older loads."""
_HOPS = {"connection", "content-length", "host", "transfer-encoding", "content-encoding"}


class Fault(Enum):
    LOSE_REQUEST = "the connection ends before the catalog hears of it"
    LOSE_ANSWER = "the catalog does it, the connection ends"
    SILENCE = "the catalog does it, nobody says so in time"
    ANSWER_504 = "the catalog does it, a gateway says it timed out"
    ANSWER_409 = "the catalog does it, a repeated delivery is told of a conflict"
    ANSWER_400 = "the catalog does it, and takes its unknown state for a bad request"
    ANSWER_403 = "the catalog does it, a gateway's session ends before the answer"
    DELIVER_TWICE = "the catalog hears it twice, its second answer counts"
    REFUSE_503 = "a gateway says the service is away, the catalog never hears of it"
    HOLD = "the connection ends, the catalog hears of it later: see `Delivery`"


_ANSWERS = {
    Fault.ANSWER_400: (400, "BadRequestException"),
    Fault.ANSWER_403: (403, "ForbiddenException"),
    Fault.ANSWER_409: (409, "CommitFailedException"),
    Fault.ANSWER_504: (504, "GatewayTimeout"),
}


class Delivery(Enum):
    BEFORE_NEXT_LOAD = "before the table is loaded the next time"
    BEFORE_NEXT_COMMIT = "before the next commit, after the table was loaded for that"
    AFTER_NEXT_COMMIT = "after the next commit"
    BY_HAND = "when `deliver_held` is called"


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogRequest:
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


class LossyProxy(ThreadingHTTPServer):
    """`faults` affect the next commits; `gathering` delays commits for rivals.

    While `away`, connections end. `delivered` answer delayed requests. `older_loads`: states that loads after a commit
    lag behind, as from a cache.
    """

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, target: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.uri = f"http://127.0.0.1:{self.server_port}"
        self.target = target
        self.faults: SimpleQueue[Fault] = SimpleQueue()
        self.gathering: threading.Barrier | None = None
        self.commits = 0
        self.struck = 0
        self.silence_seconds = 4.0
        self.is_over = threading.Event()
        self.away = False
        self.delivery = Delivery.BY_HAND
        self.delivered: list[int] = []
        self.older_loads: list[int] = []
        self._states: dict[str, deque[bytes]] = defaultdict(lambda: deque(maxlen=_STATES))
        self._is_struck = False
        self._held: list[CatalogRequest] = []
        self._lock = threading.Lock()

    def server_close(self) -> None:
        self.is_over.set()
        super().server_close()

    def refusal(self, method: str, path: str, body: bytes) -> tuple[int, str, str] | None:
        return None

    def changed(self, request: CatalogRequest, answer: bytes) -> bytes:
        """Return what the client gets for the catalog's answer."""
        return answer

    def next_fault(self) -> Fault | None:
        self.commits += 1
        if self.gathering is not None:
            with suppress(threading.BrokenBarrierError):
                self.gathering.wait(2.0)
        try:
            fault = self.faults.get_nowait()
        except Empty:
            return None
        self.struck += 1
        self._is_struck = True
        return fault

    @property
    def holds(self) -> int:
        return len(self._held)

    def hold(self, request: CatalogRequest) -> None:
        with self._lock:
            self._held.append(request)

    def deliver_held(self, when: Delivery = Delivery.BY_HAND) -> None:
        """BY_HAND delivers all."""
        with self._lock:
            if when not in {Delivery.BY_HAND, self.delivery}:
                return
            late, self._held = self._held, []
            self.delivered += [self.forward(request).status_code for request in late]

    def older_load(self, path: str) -> bytes | None:
        with self._lock:
            states = self._states[path]
            if not self._is_struck or not self.older_loads or len(states) <= self.older_loads[0]:
                return None
            return states[-1 - self.older_loads.pop(0)]

    def note_load(self, path: str, answer: bytes) -> None:
        with self._lock:
            if answer not in self._states[path]:
                self._states[path].append(answer)

    def calm(self) -> None:
        self.away = self._is_struck = False
        self.older_loads = []
        with suppress(Empty):
            while True:
                self.faults.get_nowait()

    def forward(self, request: CatalogRequest) -> requests.Response:
        url = self.target + request.path
        return requests.request(
            request.method, url, data=request.body, headers=dict(request.headers), timeout=30, allow_redirects=False
        )

    def handle_error(self, *_: object) -> None:
        pass  # clients that are killed hang up in the middle


class S3TablesProxy(LossyProxy):
    """Refuses table names as Amazon S3 Tables.

    https://docs.aws.amazon.com/AmazonS3/latest/userguide/s3-tables-buckets-naming.html
    """

    def refusal(self, method: str, path: str, body: bytes) -> tuple[int, str, str] | None:
        if method != "POST" or not path.endswith("/tables"):
            return None
        name = str(json.loads(body)["name"])
        if _S3_TABLES_NAME.fullmatch(name):
            return None
        return 400, "BadRequestException", "The specified table name is not valid."


class GlueProxy(LossyProxy):
    """Refuses staged creation, with this status.

    AWS Glue answers 400 "Stage create is not supported" (apache/iceberg-python#3210), RustFS 406 (rustfs/rustfs#7901),
    other servers 501 (trinodb/trino#28739).
    """

    def __init__(self, target: str, status: int) -> None:
        super().__init__(target)
        self.status = status
        self.plain = 0

    def refusal(self, method: str, path: str, body: bytes) -> tuple[int, str, str] | None:
        if method != "POST" or not path.endswith("/tables"):
            return None
        if json.loads(body).get("stage-create"):
            return self.status, "UnsupportedOperationException", "Stage create is not supported"
        self.plain += 1
        return None


class NessieProxy(LossyProxy):
    """Refuses requests as Nessie 0.99.0: schemas without `last-column-id`, orders and partitions in structs.

    `IcebergMetadataUpdate.AddSchema` (projectnessie/nessie) requires the field. `icebergSortOrderToNessie` and
    `icebergPartitionSpecToNessie` know only fields at the top before 0.102.0 (projectnessie/nessie#10237).
    """

    def refusal(self, method: str, path: str, body: bytes) -> tuple[int, str, str] | None:
        if method != "POST" or not _TABLE.search(path):
            return None
        updates = json.loads(body)["updates"]
        added = [update for update in updates if update["action"] == "add-schema"]
        if not all(isinstance(update.get("last-column-id"), int) for update in added):
            missing = "some of required attributes are not set [lastColumnId]"
            return 500, "RuntimeException", f"Cannot build AddSchema, {missing}"
        at_top = {field["id"] for update in added for field in update["schema"]["fields"]}
        for kind, name, number in (("spec", "partition spec", "spec-id"), ("sort-order", "sort order", "order-id")):
            for defined in (update[kind] for update in updates if added and kind in update):
                for field in defined["fields"]:
                    if field["source-id"] not in at_top:
                        said = f"Source field with ID {field['source-id']} for {name} with ID {defined[number]}"
                        return 400, "IllegalArgumentException", f"{said} does not exist"
        return None


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: LossyProxy

    def handle_any(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        headers = {name: value for name, value in self.headers.items() if name.lower() not in _HOPS}
        request = CatalogRequest(method=self.command, path=self.path, headers=headers, body=body)
        if self.server.away:
            self.server.struck += 1
            self.close_connection = True
            return
        if (refused := self.server.refusal(self.command, self.path, body)) is not None:
            self.fail(*refused)
            return
        is_table = _TABLE.search(self.path)
        if is_table and self.command == "POST":
            self.commit(request)
            return
        if is_table and self.command == "GET":
            self.server.deliver_held(Delivery.BEFORE_NEXT_LOAD)
            if (older := self.server.older_load(self.path)) is not None:
                self.answer(200, older, {"Content-Type": "application/json"})
                return
        self.pass_on(request)

    do_GET = do_POST = do_HEAD = do_DELETE = handle_any  # noqa: N815 - http.server's names

    def commit(self, request: CatalogRequest) -> None:
        self.server.deliver_held(Delivery.BEFORE_NEXT_COMMIT)
        match self.server.next_fault():
            case None:
                self.pass_on(request)
                self.server.deliver_held(Delivery.AFTER_NEXT_COMMIT)
            case Fault.DELIVER_TWICE:
                self.server.forward(request)
                self.pass_on(request)
            case Fault.LOSE_REQUEST:
                self.close_connection = True
            case Fault.REFUSE_503:
                self.fail(503, "ServiceUnavailable")
            case Fault.HOLD:
                self.server.hold(request)
                self.close_connection = True
            case Fault.SILENCE:
                self.server.forward(request)
                self.server.is_over.wait(self.server.silence_seconds)
                self.close_connection = True
            case Fault.LOSE_ANSWER:
                self.server.forward(request)
                self.close_connection = True
            case answered:
                self.server.forward(request)
                self.fail(*_ANSWERS[answered])

    def pass_on(self, request: CatalogRequest) -> None:
        try:
            answer = self.server.forward(request)
        except requests.RequestException:
            self.close_connection = True  # as the catalog's own end would look
            return
        if request.method == "GET" and answer.ok and _TABLE.search(request.path):
            self.server.note_load(request.path, answer.content)
        content = self.server.changed(request, answer.content) if answer.ok else answer.content
        self.answer(answer.status_code, content, dict(answer.headers))

    def answer(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            if name.lower() not in _HOPS:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def fail(self, status: int, kind: str, message: str = "by the proxy") -> None:
        error = {"message": message, "type": kind, "code": status}
        self.answer(status, json.dumps({"error": error}).encode())

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def lossy_proxy(target: str) -> Iterator[LossyProxy]:
    with serving(LossyProxy(target)) as proxy:
        yield proxy


@contextmanager
def s3_tables_proxy(target: str) -> Iterator[S3TablesProxy]:
    with serving(S3TablesProxy(target)) as proxy:
        yield proxy


@contextmanager
def glue_proxy(target: str, status: int = 400) -> Iterator[GlueProxy]:
    with serving(GlueProxy(target, status)) as proxy:
        yield proxy


@contextmanager
def nessie_proxy(target: str) -> Iterator[NessieProxy]:
    with serving(NessieProxy(target)) as proxy:
        yield proxy
