"""The Flight service, with pyarrow's client."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc
import pyarrow as pa
import pytest
from pyarrow import flight

from archiver.access.rules import Access, Principal, Rule
from archiver.errors import AuthenticationFailed, IntakeFull
from archiver.flight.identity import CallIdentity
from archiver.flight.memory import MessageMemory
from archiver.flight.service import FlightLimits, FlightService
from archiver.intake.batches import Acknowledgement, IntakeBatch
from archiver.intake.clients import ClientPosition
from archiver.intake.log_thread import LogThread
from archiver.intake.row_encoding import RowEncoding
from tests.support.clients.flight_client import SCHEMA, act, put, records
from tests.support.clients.flight_messages import flight_data
from tests.support.intake.encodings import RAW, encoding_of, json_schema
from tests.support.intake.logs import opened_log
from tests.support.intake.lossy_disk import LossyDisk

MESSAGE_BYTES = 1 << 20
RULES = [
    Rule.parse("User:writer", "allow", ("write",), ("sensors",), ()),
    Rule.parse("User:*", "allow", ("read",), ("*",), ()),
]


@dataclass
class FakeTopic:
    partitions: int = 3
    refusal: Exception | None = None
    disk: LossyDisk = field(default_factory=LossyDisk)
    encoding: RowEncoding = RAW
    next_encoding: RowEncoding | None = None
    rereads: int = 0

    def __post_init__(self) -> None:
        self.log = LogThread(opened_log(self.disk), name="sensors")

    def append(self, batch: IntakeBatch) -> Future[Acknowledgement]:
        if self.refusal is None:
            return self.log.append(batch)
        answer: Future[Acknowledgement] = Future()
        answer.set_exception(self.refusal)
        return answer

    def reread(self) -> Future[None]:
        """Take over `next_encoding`."""
        self.rereads += 1
        self.encoding = self.next_encoding or self.encoding
        read: Future[None] = Future()
        read.set_result(None)
        return read

    def fence(self, client: str, principal: str) -> Future[ClientPosition]:
        return self.log.fence(client, principal)

    def position(self, client: str, principal: str) -> Future[ClientPosition]:
        return self.log.position(client, principal)


@dataclass
class FakeIdentities:
    rules: Sequence[Rule] = ()

    async def identify(self, headers: Mapping[str, str], _certificates: Sequence[bytes], _address: str) -> CallIdentity:
        user = headers.get("authorization", "Bearer anybody").removeprefix("Bearer ")
        if user == "stranger":
            raise AuthenticationFailed("the credentials are missing, unknown, wrong or too old")
        return CallIdentity(Access(Principal(user), self.rules), lambda: user == "expired")

    def token(self, _access: Access) -> str:
        return "token"


@dataclass(frozen=True, slots=True)
class Running:
    address: str
    topic: FakeTopic
    memory: MessageMemory


@contextmanager
def served(topic: FakeTopic, *, rules: Sequence[Rule] = (), memory: int = 1 << 24) -> Iterator[Running]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    bound = MessageMemory(memory, patience=0.05)

    async def start() -> tuple[grpc.aio.Server, int]:
        limits = FlightLimits(message_bytes=MESSAGE_BYTES, window=4)
        topics: Any = {"sensors": topic}
        identities: Any = FakeIdentities(rules)
        service = FlightService(topics, identities, limits=limits, memory=bound, workers=workers)
        server = grpc.aio.server(options=[("grpc.max_receive_message_length", 2 * MESSAGE_BYTES)])
        server.add_generic_rpc_handlers((service.handlers(),))
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        return server, port

    with ThreadPoolExecutor(1) as workers:
        server, port = asyncio.run_coroutine_threadsafe(start(), loop).result(30)
        try:
            yield Running(f"127.0.0.1:{port}", topic, bound)
        finally:
            asyncio.run_coroutine_threadsafe(server.stop(None), loop).result(30)
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()
            topic.log.close()


def batch(number: int, **metadata: Any) -> tuple[dict[str, Any], pa.RecordBatch]:
    return {"client": "sensor", "batch_id": number, **metadata}, records(number * 10, 10)


def options(user: str) -> flight.FlightCallOptions:
    return flight.FlightCallOptions(headers=[(b"authorization", f"Bearer {user}".encode())])


def test_batches_are_acknowledged_in_order() -> None:
    with served(FakeTopic()) as server:
        answers = put(server.address, "sensors", [batch(0, partition=1), batch(1, partition=1), batch(0, partition=1)])
        assert answers == [
            {"batch_id": 0, "parts": [{"partition": 1, "base_offset": 0, "rows": 10}], "durable": "disk"},
            {"batch_id": 1, "parts": [{"partition": 1, "base_offset": 10, "rows": 10}], "durable": "disk"},
            {"batch_id": 0, "parts": [{"partition": 1, "base_offset": 0, "rows": 10}], "durable": "disk"},
        ]
        assert act(server.address, "position", topic="sensors", client="sensor") == {
            "incarnation": 0,
            "next_batch_id": 2,
        }
        assert server.memory.used == 0


@pytest.mark.parametrize(
    ("batches", "message"),
    [
        ([batch(0), batch(2)], "batch ids of a client have no gaps: send the expected batch first"),
        ([batch(0, partition=3)], "the topic has the partitions 0 to 2"),
        ([batch(0, end_ts=3)], "rows have timestamps from 0 to 9, outside of `start_ts` and `end_ts`"),
        ([({}, records(0, 1))], "`client` must be a text of 1 to 256 printable characters"),
        ([({"client": "a", "batch_id": 0}, records(0, 60_000))], "the batch unpacks to"),
    ],
)
def test_bad_batches_are_refused(batches: list[tuple[dict[str, Any], pa.RecordBatch]], message: str) -> None:
    with served(FakeTopic()) as server:
        with pytest.raises(pa.ArrowException, match=message):
            put(server.address, "sensors", batches)
        assert server.memory.used == 0


def test_a_message_above_the_limit_is_refused() -> None:
    with served(FakeTopic()) as server:
        rows = pa.record_batch([pa.array([bytes(3 * MESSAGE_BYTES)], pa.binary())], names=["value"])
        with pytest.raises(pa.ArrowException, match="larger than max"):
            put(server.address, "sensors", [({"client": "a", "batch_id": 0}, rows)], schema=rows.schema)


def test_a_wrong_schema_is_refused() -> None:
    with served(FakeTopic()) as server:
        rows = pa.record_batch([pa.array([1])], names=["value"])
        with pytest.raises(pa.ArrowInvalid, match="the column value must be binary or string, and is int64"):
            put(server.address, "sensors", [({"client": "a", "batch_id": 0}, rows)], schema=rows.schema)


DEVICES = encoding_of(json_schema(device={"type": "string"}), key_column="device")


def put_rows(server: Running, number: int, path: Sequence[str] = ("sensors",), **columns: Any) -> list[dict[str, Any]]:
    rows = pa.record_batch(columns)
    return put(server.address, path, [({"client": "a", "batch_id": number}, rows)], schema=rows.schema)


def test_rows_and_records_of_one_key_share_a_partition() -> None:
    devices = [f"device {number}" for number in range(20)]
    with served(FakeTopic(encoding=DEVICES)) as server:
        (rows,) = put_rows(server, 0, device=devices)
        (records,) = put_rows(server, 1, key=devices, value=devices)
        again = put_rows(server, 0, device=devices)
    assert [part["rows"] for part in rows["parts"]] == [part["rows"] for part in records["parts"]]
    assert len(rows["parts"]) == 3
    assert again == [rows]


def test_a_changed_schema_is_read_for_new_columns() -> None:
    wider = encoding_of(json_schema(device={"type": "string"}, room={"type": "string"}))
    topic = FakeTopic(encoding=DEVICES, next_encoding=wider)
    with served(topic) as server:
        assert put_rows(server, 0, device=["a"])
        assert topic.rereads == 0
        assert put_rows(server, 1, device=["a"], room=["r"])
        with pytest.raises(pa.ArrowInvalid, match=r"! val.room \(id \d+\) long takes the place of the string column"):
            put_rows(server, 2, room=[1])
    assert topic.rereads == 2


def test_an_open_stream_follows_the_schema() -> None:
    topic = FakeTopic(encoding=DEVICES)
    rows = pa.record_batch({"device": ["a"]})

    def batches() -> Iterator[tuple[dict[str, Any], pa.RecordBatch]]:
        yield {"client": "a", "batch_id": 0}, rows
        topic.encoding = encoding_of(json_schema(device={"type": "string"}, room={"type": "string"}))
        yield {"client": "a", "batch_id": 1}, rows
        topic.encoding = encoding_of(json_schema(room={"type": "string"}))
        yield {"client": "a", "batch_id": 2}, rows

    with served(topic) as server:
        with pytest.raises(pa.ArrowInvalid, match=r"\+ val.device string is no column"):
            put(server.address, "sensors", batches(), schema=rows.schema)
        assert act(server.address, "position", topic="sensors", client="a")["next_batch_id"] == 2


def test_the_path_names_the_shape() -> None:
    texts = encoding_of(json_schema(value={"type": "string"}))
    with served(FakeTopic(encoding=texts)) as server:
        assert put_rows(server, 0, ("sensors", "rows"), value=["a"])
        assert put_rows(server, 1, ("sensors", "records"), value=["a"])
        assert put_rows(server, 2, ("sensors",), value=["a"])
        for path, message in (
            (["sensors", "tables"], "the descriptor's path is the topic, and if needed records or rows"),
            (["sensors", "rows", "rows"], "the descriptor's path is the topic, and if needed records or rows"),
        ):
            with pytest.raises(pa.ArrowInvalid, match=message):
                put_rows(server, 3, path, value=["a"])


def test_dictionaries_are_plain_columns() -> None:
    """The second batch replaces the dictionary of the first one."""
    texts = encoding_of(json_schema(x={"type": "string"}, y={"type": "array", "items": {"type": "string"}}))
    kind = pa.dictionary(pa.int8(), pa.string())
    parts: list[dict[str, pa.Array]] = [
        {"x": pa.array(values, kind), "y": pa.array([[value] if value else None for value in values], pa.list_(kind))}
        for values in (["a", "b", None, "a"], ["c", None, "c", "d"])
    ]
    plain = [
        {name: column.cast(texts.row.value.arrow_type.field(name).type) for name, column in part.items()}
        for part in parts
    ]
    with served(FakeTopic(encoding=texts)) as server:
        sent = [pa.record_batch(part) for part in parts]
        batches = [({"client": "a", "batch_id": number}, rows) for number, rows in enumerate(sent)]
        answers = put(server.address, "sensors", batches, schema=sent[0].schema)
        for number, rows in enumerate(plain):
            assert put_rows(server, number, **rows) == [answers[number]]


def test_large_dictionaries_are_refused() -> None:
    texts = encoding_of(json_schema(x={"type": "string"}))
    kind = pa.dictionary(pa.int32(), pa.string())
    with served(FakeTopic(encoding=texts)) as server:
        with pytest.raises(
            pa.ArrowInvalid, match="the dictionaries need more than 1,048,576 bytes: send plain columns"
        ):
            put_rows(server, 0, x=pa.array(["x" * (1 << 20)], kind))
        with pytest.raises(
            pa.ArrowInvalid, match="the batch has 1,000,000,000 bytes as plain columns, and may have 1,048,576"
        ):
            put_rows(server, 0, x=pa.array(["x" * 100_000] * 10_000, kind))
        with pytest.raises(pa.ArrowInvalid, match="the column value must be binary or string, and is dictionary"):
            put_rows(server, 0, ("sensors", "records"), value=pa.array(["x"], kind))
        assert put_rows(server, 0, x=["x"])


def test_values_that_outgrow_their_columns_are_counted() -> None:
    texts = encoding_of(json_schema(x={"type": "string"}))
    with served(FakeTopic(encoding=texts), memory=1) as server:
        assert put_rows(server, 0, x=["\0" * 10_000])
        assert server.memory.used == 0


def test_a_newer_incarnation_fences_the_older() -> None:
    with served(FakeTopic()) as server:
        put(server.address, "sensors", [batch(0)])
        assert act(server.address, "fence", topic="sensors", client="sensor") == {"incarnation": 1, "next_batch_id": 1}
        with pytest.raises(pa.ArrowException, match="a newer incarnation of the client has taken over"):
            put(server.address, "sensors", [batch(1)])
        assert len(put(server.address, "sensors", [batch(1, incarnation=1)])) == 1


def test_a_client_name_belongs_to_its_first_principal() -> None:
    topic = FakeTopic()
    with served(topic) as server:
        put(server.address, "sensors", [batch(0)], options=options("ANONYMOUS"))
        put(server.address, "sensors", [batch(1)], options=options("ANONYMOUS"))
        put(server.address, "sensors", [batch(2)], options=options("alice"))
        for user in ("bob", "ANONYMOUS"):
            with pytest.raises(
                flight.FlightUnauthorizedError, match="another principal sends batches with this client"
            ):
                put(server.address, "sensors", [batch(3)], options=options(user))
            for kind in ("fence", "position"):
                body = json.dumps({"topic": "sensors", "client": "sensor"}).encode()
                with (
                    flight.FlightClient(f"grpc://{server.address}") as client,
                    pytest.raises(flight.FlightUnauthorizedError, match="use another name"),
                ):
                    list(client.do_action(flight.Action(kind, body), options(user)))
        assert len(put(server.address, "sensors", [batch(3)], options=options("alice"))) == 1
        assert len(put(server.address, "sensors", [({"client": "bobs", "batch_id": 0}, records(0, 1))])) == 1


def test_rules_are_of_writing() -> None:
    with served(FakeTopic(), rules=RULES) as server:
        assert len(put(server.address, "sensors", [batch(0)], options=options("writer"))) == 1
        for user, topic in (("reader", "sensors"), ("writer", "other"), ("reader", "missing")):
            with pytest.raises(flight.FlightUnauthorizedError, match=f"User:{user} may not write to the topic"):
                put(server.address, topic, [batch(0)], options=options(user))


def test_credentials_are_checked() -> None:
    with served(FakeTopic()) as server:
        with pytest.raises(flight.FlightUnauthenticatedError, match="the credentials are missing, unknown, wrong"):
            put(server.address, "sensors", [batch(0)], options=options("stranger"))
        with pytest.raises(flight.FlightUnauthenticatedError, match="the credentials have expired"):
            put(server.address, "sensors", [batch(0)], options=options("expired"))


def test_an_unknown_topic_is_named() -> None:
    with served(FakeTopic()) as server, pytest.raises(pa.ArrowKeyError, match="no section of the configuration has"):
        put(server.address, "other", [batch(0)])


def test_an_unknown_action_is_refused() -> None:
    with served(FakeTopic()) as server:
        with pytest.raises(pa.ArrowInvalid, match="there is no such action; there are position, fence"):
            act(server.address, "drop", topic="sensors", client="a")
        with flight.FlightClient(f"grpc://{server.address}") as client:
            assert [action.type for action in client.list_actions()] == ["position", "fence"]


def test_a_full_log_refuses_the_batch_with_a_time() -> None:
    refusal = IntakeFull("the write-ahead log is full", topic="sensors", retry_seconds=1.0)
    with served(FakeTopic(refusal=refusal)) as server:
        with pytest.raises(pa.ArrowException, match="the write-ahead log is full"):
            put(server.address, "sensors", [batch(0)])
        assert server.memory.used == 0


def test_clients_wait_for_memory_and_are_refused_then() -> None:
    syncing, go = threading.Event(), threading.Event()
    topic = FakeTopic()

    def step(name: str) -> None:
        if name == "sync":
            syncing.set()
            assert go.wait(30)

    topic.disk.step = step
    with served(topic, memory=1) as server, ThreadPoolExecutor(1) as clients:
        first = clients.submit(put, server.address, "sensors", [batch(0)])
        assert syncing.wait(30)
        with pytest.raises(pa.ArrowException, match="as many unacknowledged rows"):
            put(server.address, "sensors", [({"client": "b", "batch_id": 0}, records(0, 1))])
        go.set()
        assert len(first.result(30)) == 1
        assert server.memory.used == 0


def test_garbage_ends_the_call_alone() -> None:
    with served(FakeTopic()) as server:
        with grpc.insecure_channel(server.address) as channel:
            do_put = channel.stream_stream("/arrow.flight.protocol.FlightService/DoPut")
            for garbage in (b"", b"\xff" * 50, b"\x0a\xff", bytes(1000), b"\x12\x04abcd"):
                with pytest.raises(grpc.RpcError) as caught:
                    list(do_put(iter([garbage])))
                assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert len(put(server.address, "sensors", [batch(0)])) == 1


def test_a_schema_alone_is_no_error() -> None:
    with served(FakeTopic()) as server:
        assert put(server.address, "sensors", [], schema=SCHEMA) == []


def test_a_handshake_gives_a_token() -> None:
    with served(FakeTopic()) as server, flight.FlightClient(f"grpc://{server.address}") as client:
        assert client.authenticate_basic_token("alice", "secret") == (b"authorization", b"Bearer token")


@pytest.mark.parametrize("method", ["DoAction", "ListActions", "Handshake", "DoPut"])
def test_calls_without_credentials_end_before_a_message(method: str) -> None:
    """Else each would hold one of the server's calls."""
    silent = threading.Event()

    def no_message() -> Iterator[bytes]:
        silent.wait(60)
        yield b""

    with served(FakeTopic()) as server, grpc.insecure_channel(server.address) as channel:
        call = channel.stream_stream(f"/arrow.flight.protocol.FlightService/{method}")
        with pytest.raises(grpc.RpcError) as caught:
            next(call(no_message(), metadata=(("authorization", "Bearer stranger"),), timeout=10))
        silent.set()
        assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED


def test_an_action_without_a_message_is_refused() -> None:
    with served(FakeTopic()) as server, grpc.insecure_channel(server.address) as channel:
        call = channel.stream_stream("/arrow.flight.protocol.FlightService/DoAction")
        with pytest.raises(grpc.RpcError, match="the call has no message"):
            next(call(iter([])))


def test_names_that_are_not_text_are_refused() -> None:
    header = bytes(SCHEMA.serialize())[8:].replace(b"key", b"k\xffy")
    with served(FakeTopic()) as server, grpc.insecure_channel(server.address) as channel:
        call = channel.stream_stream("/arrow.flight.protocol.FlightService/DoPut")
        with pytest.raises(grpc.RpcError, match="the schema has names that are not UTF-8") as caught:
            list(call(iter([flight_data(header=header)])))
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
