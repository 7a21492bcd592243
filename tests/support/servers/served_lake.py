"""A table behind a real endpoint, and requests in kio's messages."""

from __future__ import annotations

import asyncio
import io
import socket
import struct
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import fields, is_dataclass
from datetime import timedelta
from types import NoneType, TracebackType
from typing import Any, Self, get_args, get_origin
from uuid import UUID

from kio.index import load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode
from kio.serial import entity_reader, entity_writer

from archiver.archive.batches import OpenStreams
from archiver.config.model import ServeSection
from archiver.errors import NoTable
from archiver.serve.groups import CommittedOffsets, Coordinator
from archiver.serve.kafka.connection import ConnectionLimits
from archiver.serve.kafka.server import Door, Server
from archiver.serve.kafka.service import Redirects, Service
from archiver.serve.kafka.watch import Watch
from archiver.serve.nodes import Beats, NodeAddress, NodeCluster, NodeStore
from archiver.serve.reading import (
    CHUNK_BYTES,
    ChunkCache,
    ChunkReader,
    ServedTopic,
    ServedTopics,
    SpilledChunks,
    Workers,
)
from archiver.serve.security import OpenDoor, Quotas
from catalog.errors import OffsetBudgetReached
from catalog.registry import GroupClaim, OffsetBudget
from tests.support.archive.archived_batches import KnownRows
from tests.support.archive.lake import Lake
from tests.support.servers.nodes_in_memory import NodesInMemory

SECONDS = 20


class OffsetsInMemory:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.error: Exception | None = None
        self._clock = clock
        self._groups: dict[str, dict[tuple[str, int], Any]] = {}
        self._used_at: dict[str, float] = {}
        self._owners: dict[str, str] = {}

    def commit(
        self,
        group_id: str,
        offsets: CommittedOffsets,
        budget: OffsetBudget | None = None,
        *,
        claim: GroupClaim | None = None,
    ) -> None:
        by_group = self._known()
        if budget is not None and group_id not in by_group:
            groups = 1 + sum(owner == budget.owner for owner in self._owners.values())
            if groups > budget.groups:
                raise OffsetBudgetReached("no more groups", groups=groups, most_groups=budget.groups)
            self._owners[group_id] = budget.owner
        by_group.setdefault(group_id, {}).update(offsets)
        self._used_at[group_id] = self._clock()

    def load(self, group_id: str) -> CommittedOffsets:
        return dict(self._known().get(group_id, {}))

    def delete(
        self,
        group_id: str,
        places: Collection[tuple[str, int]] | None = None,
        *,
        claim: GroupClaim | None = None,
    ) -> int:
        kept = self._known().get(group_id, {})
        gone = [key for key in kept if places is None or key in places]
        for key in gone:
            del kept[key]
        if not kept:
            self._groups.pop(group_id, None)
            self._owners.pop(group_id, None)
        return len(gone)

    def groups(self) -> tuple[str, ...]:
        return tuple(sorted(self._known()))

    def use(self, groups: Collection[str]) -> None:
        self._known()
        self._used_at.update(dict.fromkeys(groups, self._clock()))

    def expired(self, age: float) -> tuple[str, ...]:
        return tuple(group for group in self.groups() if self._clock() - self._used_at[group] > age)

    def expire(self, group_id: str, age: float, *, claim: GroupClaim | None = None) -> int:
        return self.delete(group_id) if group_id in self.expired(age) else 0

    def _known(self) -> dict[str, dict[tuple[str, int], Any]]:
        if self.error is not None:
            raise self.error
        return self._groups


class ServedLake:
    reader: ChunkReader
    topics: ServedTopics
    server: Server
    cluster: NodeCluster

    def __init__(
        self,
        lake: Lake,
        *,
        cache: int = 64 << 20,
        read_ahead: int = 0,
        spilled: SpilledChunks | None = None,
        interval: float = 0.05,
        most_request_bytes: int = 1 << 20,
        request_memory: int = 64 << 20,
        chunk_bytes: int = CHUNK_BYTES,
        idle_seconds: float = 60.0,
        frame_seconds: float = 60.0,
        most_connections: int = 50,
        most_response_bytes: int = 64 << 20,
        most_per_address: int | None = None,
        handshake_seconds: float = 10.0,
        half_closed_seconds: float = 5.0,
        long_work_seconds: float = 120.0,
        door: Door | None = None,
        quotas: Quotas | None = None,
        nodes: NodeStore | None = None,
        offsets: OffsetsInMemory | None = None,
        beats: Beats | None = None,
        watch: Watch | None = None,
        spreads_answers: bool = True,
        redirects: Redirects | None = None,
        begins: Callable[[], Mapping[int, int]] = dict,
        **archive: Any,
    ) -> None:
        self.lake = lake
        self.offsets = offsets or OffsetsInMemory()
        self._nodes = nodes or NodesInMemory()
        self.watch = watch or Watch(ServeSection())
        self._beats = beats or Beats(every=0.05, lost_after=60.0)
        self._cache, self._read_ahead, self._interval = cache, read_ahead, interval
        self._spilled = spilled
        self._request_memory, self._chunk_bytes = request_memory, chunk_bytes
        self._limits = ConnectionLimits(
            most_request_bytes=most_request_bytes,
            idle_seconds=idle_seconds,
            frame_seconds=frame_seconds,
            answer_seconds=5.0,
            long_work_seconds=long_work_seconds,
            handshake_seconds=handshake_seconds,
            half_closed_seconds=half_closed_seconds,
        )
        self._most_per_address, self._door, self.quotas = most_per_address, door or OpenDoor(), quotas or Quotas()
        self._most_connections, self._most_response_bytes = most_connections, most_response_bytes
        self._archive = {"registry": lambda *_: KnownRows()} | archive
        self._spreads_answers = spreads_answers
        self._begins, self._redirects = begins, redirects or Redirects()
        self._ready = threading.Event()
        self.thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)

    def __enter__(self) -> Self:
        self.thread.start()
        assert self._ready.wait(SECONDS)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        with suppress(RuntimeError):  # a test may have ended it, and its loop is closed by now
            self.loop.call_soon_threadsafe(self.stop.set)
        self.thread.join(SECONDS)
        assert not self.thread.is_alive()

    def call(self, coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(SECONDS)

    async def _serve(self) -> None:
        self.loop, self.stop = asyncio.get_running_loop(), asyncio.Event()
        self.server = Server(
            self._limits,
            most_connections=self._most_connections,
            most_per_address=self._most_per_address,
            request_memory=self._request_memory,
            door=self._door,
        )
        self.port = await self.server.listen("127.0.0.1", 0)
        cache, streams = ChunkCache(self._cache), OpenStreams(4)
        self.reader = ChunkReader(
            cache, read_ahead=self._read_ahead, most_loads=4, spilled=self._spilled, chunk_bytes=self._chunk_bytes
        )
        with Workers(2) as workers:

            async def open_topic(name: str) -> ServedTopic:
                if name not in self.lake.topics():
                    raise NoTable("the topic has no archive yet", topic=name)
                archive = await workers.lookup(self.lake.archive, **self._archive)
                return ServedTopic(
                    archive,
                    workers,
                    streams=streams,
                    interval=self._interval,
                    begins=self._begins,
                    on_rewrite=self.reader.forget,
                )

            self.topics = ServedTopics(self.lake, open_topic, workers, interval=self._interval)
            coordinator = Coordinator(initial_delay=0.05, over_budget=self.watch.budgets.reached)
            await self.topics.load()
            self.cluster = NodeCluster(
                "archive",
                self._nodes,
                NodeAddress(host="127.0.0.1", port=self.port),
                beats=self._beats,
                let_go=coordinator.forget,
                is_used=coordinator.groups.__contains__,
            )
            await self.cluster.start()
            await self.server.start(
                Service(
                    cluster=self.cluster,
                    topics=self.topics,
                    reader=self.reader,
                    coordinator=coordinator,
                    offsets=self.offsets,
                    kept=workers.offsets,
                    quotas=self.quotas,
                    traffic=self.watch.traffic,
                    budgets=self.watch.budgets,
                    spreads_answers=self._spreads_answers,
                    redirects=self._redirects,
                    most_response_bytes=lambda: self._most_response_bytes,
                )
            )
            with self.watch:
                self.watch.begin(
                    server=self.server,
                    workers=workers,
                    reader=self.reader,
                    topics=self.topics,
                    coordinator=coordinator,
                    cluster=self.cluster,
                )
                self._ready.set()
                await self.stop.wait()
            await self.server.end_in_order(SECONDS)
            coordinator.close()
            await self.server.close()
            await self.reader.close()
            await self.topics.close()


class Wire:
    def __init__(self, port: int, *, address: str = "127.0.0.1") -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=SECONDS, source_address=(address, 0))
        self._number = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def ask(self, request: Any) -> Any:
        self._number += 1
        self.send(framed(request, self._number))
        kind = load_response_schema(request.__api_key__, request.__version__)
        return response(kind, self.receive(), self._number)

    def send(self, frame: bytes) -> None:
        self.socket.sendall(struct.pack(">i", len(frame)) + frame)

    def receive(self) -> bytes:
        (size,) = struct.unpack(">i", self._exactly(4))
        return self._exactly(size)

    def is_closed(self) -> bool:
        try:
            return self.socket.recv(1) == b""
        except ConnectionError:
            return True

    def _exactly(self, size: int) -> bytes:
        content = bytearray()
        while len(content) < size:
            part = self.socket.recv(size - len(content))
            if not part:
                raise ConnectionResetError("the server ended the connection")
            content += part
        return bytes(content)


def framed(request: Any, number: int) -> bytes:
    head = struct.pack(">hhih", request.__api_key__, request.__version__, number, 4) + b"test"
    return head + (b"\0" if request.__header_schema__.__flexible__ else b"") + written(request)


def written(message: Any) -> bytes:
    out = io.BytesIO()
    entity_writer(type(message))(out, message)
    return out.getvalue()


def response(kind: Any, frame: bytes, number: int) -> Any:
    assert struct.unpack_from(">i", frame)[0] == number
    start = 5 if kind.__header_schema__.__flexible__ else 4
    body, size = entity_reader(kind)(frame, start)
    assert start + size == len(frame)
    return body


def request(api_key: int, version: int, **values: Any) -> Any:
    """Other fields are blank; arrays have one element."""
    return _blank(load_request_schema(api_key, version), values)


def waiting_fetch(most_bytes: int = 1 << 20) -> Any:
    return request(
        1,
        11,
        replica_id=-1,
        topic="orders",
        partition=0,
        fetch_offset=10,
        max_wait=timedelta(seconds=60),
        min_bytes=1,
        max_bytes=most_bytes,
        partition_max_bytes=most_bytes,
        isolation_level=0,
        session_id=0,
        session_epoch=-1,
        current_leader_epoch=-1,
        forgotten_topics_data=(),
    )


def _blank(kind: Any, values: dict[str, Any]) -> Any:
    return kind(**{field.name: _field(field, values) for field in fields(kind)})


def _field(field: Any, values: dict[str, Any]) -> Any:
    if field.name in values:
        return values[field.name]
    inner, is_array = shape(field.type)
    value = _blank(inner, values) if is_dataclass(inner) else _PLAIN.get(field.metadata["kafka_type"], 1)
    return (value,) if is_array else value


def shape(kind: Any) -> tuple[Any, bool]:
    if NoneType in get_args(kind):
        (kind,) = (argument for argument in get_args(kind) if argument is not NoneType)
    return (get_args(kind)[0], True) if get_origin(kind) is tuple else (kind, False)


_PLAIN: dict[str, Any] = {
    "string": "blank",
    "bytes": b"blank",
    "records": b"blank",
    "bool": True,
    "uuid": UUID(int=7),
    "error_code": ErrorCode.none,
    "timedelta_i32": timedelta(0),
    "timedelta_i64": timedelta(0),
    "float64": 0.5,
}


@contextmanager
def served(lake: Lake, **options: Any) -> Iterator[tuple[ServedLake, Wire]]:
    with ServedLake(lake, **options) as endpoint, Wire(endpoint.port) as wire:
        yield endpoint, wire
