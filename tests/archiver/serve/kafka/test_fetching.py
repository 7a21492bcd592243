"""Fetches over a socket."""

from __future__ import annotations

import asyncio
import struct
import threading
import time
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from kio.schema.errors import ErrorCode

from archiver.access import ANONYMOUS, Access, Rule
from archiver.serve.kafka.client_turns import ClientTurns
from archiver.serve.kafka.closing_log import ClosingLog
from archiver.serve.kafka.fetch import fetch as answer_to
from archiver.serve.kafka.fetch_sessions import FetchSessions
from archiver.serve.kafka.loop_time import LoopTime
from archiver.serve.kafka.service import Client, Request
from archiver.serve.reading.served_partition import ServedPartition
from archiver.serve.security import Session
from archiver.telemetry.serving import Traffic
from catalog.errors import RegistryUnreachable
from tests.support.archive.archived_batches import ROWS, archived, records_in, split
from tests.support.archive.lake import Lake
from tests.support.kafka.record_batches import Record, build
from tests.support.servers.served_lake import ServedLake, Wire, framed, request, served
from tests.support.timing.eventually import settle

ORDERS = "orders"
COUNT = 40
BATCHES = [build([Record(value=b"x" * 200)] * 5, base_offset=at, leader_epoch=0) for at in range(0, 5 * COUNT, 5)]
END = 5 * COUNT + 3
"""The last offsets hold no record."""


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return archived(tmp_path / "lake", b"".join(BATCHES), end=END, files=4)


def fetch(wire: Wire, offset: int, **changes: Any) -> Any:
    answer = whole(wire, offset, **changes)
    assert answer.error_code == ErrorCode.none
    return answer.responses[0].partitions[0]


def whole(wire: Wire, offset: int, **changes: Any) -> Any:
    return wire.ask(request(1, 12, **wanted(offset) | changes))


def wanted(offset: int) -> dict[str, Any]:
    return {
        "topic": ORDERS,
        "partition": 0,
        "fetch_offset": offset,
        "max_bytes": 1 << 20,
        "partition_max_bytes": 1 << 20,
        "min_bytes": 1,
        "max_wait": timedelta(0),
        "session_id": 0,
        "session_epoch": -1,
        "forgotten_topics_data": (),
    }


def read_all(wire: Wire, **changes: Any) -> list[int]:
    seen: list[int] = []
    position = 0
    while True:
        partition = fetch(wire, position, **changes)
        assert partition.error_code == ErrorCode.none
        if not partition.records:
            assert position == partition.high_watermark
            return seen
        for batch in split(partition.records):
            seen += offsets_in(batch, position)
            position = last_of(batch) + 1


def offsets_in(batch: bytes, position: int) -> list[int]:
    is_control = struct.unpack_from(">h", batch, 21)[0] & 0x20
    offsets = [] if is_control else records_in(batch).column("offset").to_pylist()
    return [offset for offset in offsets if offset >= position]


def last_of(batch: bytes) -> int:
    return int(struct.unpack_from(">q", batch)[0] + struct.unpack_from(">i", batch, 23)[0])


def test_all_records_come_in_whole_batches_as_they_were(lake: Lake) -> None:
    with served(lake) as (_, wire):
        partition = fetch(wire, 0)
        assert split(partition.records) == BATCHES
        assert (partition.high_watermark, partition.last_stable_offset, partition.log_start_offset) == (END, END, 0)
        assert last_of(fetch(wire, 5 * COUNT).records) == END - 1, "offsets without records can be stepped over"
        assert fetch(wire, END).records == b""


@pytest.mark.parametrize("size", [0, 1, len(BATCHES[0]), 3 * len(BATCHES[0]) + 7])
@pytest.mark.parametrize("limit", ["max_bytes", "partition_max_bytes"])
def test_limits_mean_whole_batches_and_at_least_one(lake: Lake, size: int, limit: str) -> None:
    with served(lake) as (_, wire):
        assert split(fetch(wire, 0, **{limit: size}).records) == BATCHES[: max(1, size // len(BATCHES[0]))]
        assert read_all(wire, **{limit: size}) == list(range(5 * COUNT))


def test_a_batch_in_the_middle_of_which_a_client_goes_on(lake: Lake) -> None:
    with served(lake) as (_, wire):
        fetch(wire, 0)
        assert split(fetch(wire, 7, partition_max_bytes=1).records) == [BATCHES[1]], "out of memory, whole as in Kafka"


def test_ten_readers_of_one_range_decode_it_once(lake: Lake) -> None:
    with ServedLake(lake, most_connections=20) as endpoint:
        topic = endpoint.topics.open[0]
        decoded: list[int] = []
        real = topic.chunk

        async def counted(partition: int, offset: int, max_bytes: int) -> Any:
            decoded.append(offset)
            return await real(partition, offset, max_bytes)

        topic.chunk = counted  # type: ignore[method-assign]
        seen: list[list[int]] = []

        def read() -> None:
            with Wire(endpoint.port) as wire:
                seen.append(read_all(wire, partition_max_bytes=2_000))

        threads = [threading.Thread(target=read) for _ in range(10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        assert seen == [list(range(5 * COUNT))] * 10
        assert len(decoded) == len(set(decoded))


def test_slow_readers_share_work_without_a_disk(lake: Lake) -> None:
    async def play() -> None:
        reader, topic = endpoint.reader, endpoint.topics.open[0]
        loads = {reader.load(topic, 0, 0), reader.load(topic, 0, 0, slow_takes=100)}
        assert [chunk.start for chunk in await asyncio.gather(*loads) if chunk is not None] == [0]

    with ServedLake(lake) as endpoint:
        endpoint.call(play())


@pytest.mark.parametrize("offset", [END + 1, 1 << 62])
def test_offsets_outside_are_told(lake: Lake, offset: int) -> None:
    with served(lake) as (_, wire):
        assert fetch(wire, offset).error_code == ErrorCode.offset_not_available, "records are skipped by no mistake"


def test_records_retired_during_a_fetch_are_out_of_range(tmp_path: Path) -> None:
    """The log start was read before. A client would skip missing records."""
    lake = archived(tmp_path / "lake", b"".join(BATCHES), end=END, files=4)
    with served(lake, interval=3600.0) as (_, wire):
        lake.retire(150)
        for _ in range(2):
            partition = fetch(wire, 60)
            assert (partition.error_code, partition.records) == (ErrorCode.offset_out_of_range, b"")
        partition = fetch(wire, 150)
        assert (partition.error_code, partition.log_start_offset) == (ErrorCode.none, 150)
        assert split(partition.records)[0] == BATCHES[30]


def test_offsets_before_the_first_record(tmp_path: Path) -> None:
    late = archived(tmp_path / "lake", BATCHES[20], end=110)
    with served(late) as (_, wire):
        partition = fetch(wire, 3)
        assert (partition.error_code, partition.log_start_offset) == (ErrorCode.offset_out_of_range, 100)


def test_a_begin_that_is_not_known_puts_nobody_out_of_range(tmp_path: Path) -> None:
    """A client with auto.offset.reset=latest would continue at the end."""
    late = archived(tmp_path / "lake", BATCHES[20], end=110)

    def away() -> NoReturn:
        raise RegistryUnreachable("nobody answers")

    with served(late, begins=away) as (_, wire):
        assert fetch(wire, 3).error_code == ErrorCode.kafka_storage_error
        assert fetch(wire, 100).error_code == ErrorCode.none


def test_begins_are_asked_for_once_and_before_the_first_fetch(lake: Lake) -> None:
    """The topic is opened then: later fetches don't wait for the registry."""
    questions: list[str] = []

    def begins() -> dict[int, int]:
        questions.append("begins")
        return {0: 0}

    with served(lake, begins=begins) as (_, wire):
        assert questions == ["begins"]
        wire.ask(request(3, 12, topic_id=None, name=ORDERS))
        assert fetch(wire, 0).error_code == ErrorCode.none
        assert questions == ["begins"]


def test_begin_is_requested_again_for_a_newer_partition(lake: Lake) -> None:
    answers: list[dict[int, int]] = [{}, {0: 0, 1: 7}]

    async def play() -> dict[int, int | None]:
        topic = endpoint.topics.open[0]
        topic._knows_begins = False
        topic._ask_begins = lambda: answers.pop(0)
        topic.learn_begins()
        await settle(1)
        topic._served[1] = ServedPartition(end=9)
        await topic.start(1)
        return {partition: served.begin for partition, served in topic._served.items()}

    with ServedLake(lake) as endpoint:
        assert endpoint.call(play()) == {0: 0, 1: 7}
    assert answers == []


def test_unknown_topics_partitions_and_sessions_are_told(lake: Lake) -> None:
    with served(lake) as (_, wire):
        assert fetch(wire, 0, topic="none").error_code == ErrorCode.unknown_topic_or_partition
        assert fetch(wire, 0, partition=9).error_code == ErrorCode.unknown_topic_or_partition
        assert whole(wire, 0, session_id=5, session_epoch=5).error_code == ErrorCode.fetch_session_id_not_found
        by_id = wire.ask(request(1, 13, session_id=0, session_epoch=-1, forgotten_topics_data=()))
        assert by_id.responses[0].partitions[0].error_code == ErrorCode.unknown_topic_id


def test_a_session_goes_on_without_naming_partitions(lake: Lake) -> None:
    with served(lake) as (_, wire):
        first = whole(wire, END, session_epoch=0)
        assert first.session_id > 0
        again = whole(wire, 0, session_id=first.session_id, session_epoch=1, topics=())
        assert again.responses == (), "nothing changed"


def test_a_client_at_the_end_waits_for_the_next_commit(lake: Lake) -> None:
    with served(lake) as (_, wire):
        began = time.monotonic()
        assert fetch(wire, END, max_wait=timedelta(milliseconds=150)).records == b""
        assert 0.14 < time.monotonic() - began < 5
        extended = archived(lake.folder / "more", build([Record(value=b"new")], base_offset=END), end=END + 1)
        timer = threading.Timer(0.2, lambda: add(lake, extended))
        timer.start()
        partition = fetch(wire, END, max_wait=timedelta(seconds=15))
        timer.join()
        assert time.monotonic() - began < 10
        assert offsets_in(partition.records, 0) == [END]
        assert partition.high_watermark == END + 1


def add(lake: Lake, other: Lake) -> None:
    import pyarrow.parquet as pq

    (file,) = other.files()
    table = pq.read_table(file.file_path.removeprefix("file://"))
    lake.add(ROWS, table.combine_chunks().to_batches()[0], END, END + 1)


@pytest.mark.parametrize("read_ahead", [0, 1 << 20])
def test_readers_go_on_over_a_rewrite_without_a_gap_or_a_repeat(lake: Lake, read_ahead: int) -> None:
    with served(lake, read_ahead=read_ahead, cache=1) as (_, wire):
        seen: list[int] = []
        position = 0
        while position < END:
            partition = fetch(wire, position, partition_max_bytes=1_500)
            assert partition.error_code == ErrorCode.none
            for batch in split(partition.records):
                seen += offsets_in(batch, position)
                position = last_of(batch) + 1
            if len(seen) in {50, 100, 150}:
                lake.rewrite(drop=True)
        assert seen == list(range(5 * COUNT))


def test_records_that_others_deleted_become_gaps(lake: Lake) -> None:
    with served(lake) as (_, wire):
        assert len(read_all(wire)) == 5 * COUNT
        lake.rewrite(without_20_to_40, drop=True)
        deadline = time.monotonic() + 10
        while (seen := read_all(wire)) != [*range(20), *range(40, 5 * COUNT)]:
            assert time.monotonic() < deadline, seen[:5]
            wait_for_a_look(wire)


def without_20_to_40(table: pa.Table) -> pa.Table:
    offsets = pc.struct_field(table["kafka"], "offset")
    return table.filter(pc.or_(pc.less(offsets, 20), pc.greater_equal(offsets, 40)))


def wait_for_a_look(wire: Wire) -> None:
    fetch(wire, END, max_wait=timedelta(milliseconds=100))


def test_a_catalog_that_is_away_stops_nobody(lake: Lake, caplog: pytest.LogCaptureFixture) -> None:
    from archiver.errors import StorageUnavailable

    with served(lake) as (endpoint, wire):
        real = lake.load

        def away(_: str) -> Any:
            raise StorageUnavailable("the catalog is away")

        lake.load = away  # type: ignore[method-assign]
        fetch(wire, END, max_wait=timedelta(milliseconds=300))
        assert read_all(wire) == list(range(5 * COUNT))
        assert endpoint.topics.open[0].trouble is not None
        assert sum("served as it was last seen" in record.message for record in caplog.records) == 1, "logged once"
        lake.load = real  # type: ignore[method-assign]
        fetch(wire, END, max_wait=timedelta(milliseconds=300))
        assert endpoint.topics.open[0].trouble is None


def test_an_error_is_told_and_skips_nothing(lake: Lake) -> None:
    with served(lake) as (_, wire):
        path = Path(lake.files()[2].file_path.removeprefix("file://"))
        kept = path.read_bytes()
        path.write_bytes(b"not Parquet")
        position = 0
        while (partition := fetch(wire, position)).error_code == ErrorCode.none:
            assert partition.records
            position = last_of(split(partition.records)[-1]) + 1
        assert 0 < position < 5 * COUNT
        assert partition.error_code in {ErrorCode.unknown_server_error, ErrorCode.kafka_storage_error}
        path.write_bytes(kept)
        assert offsets_in(split(fetch(wire, position).records)[0], position)[0] == position


HOSTILE = {
    "endless frame": struct.pack(">i", 2**31 - 1),
    "negative frame": struct.pack(">i", -5),
    "short frame": struct.pack(">i", 3) + b"abc",
    "unknown API": struct.pack(">ihhih", 10, 999, 0, 1, -1),
    "unknown version": struct.pack(">ihhih", 10, 1, 99, 1, -1),
    "array beyond the frame": struct.pack(">ihhihi", 14, 3, 4, 1, -1, 2**31 - 1),
    "compact array beyond the frame": struct.pack(">ihhih", 16, 3, 12, 1, -1) + b"\0\xff\xff\xff\xff\x0f",
    "client beyond the frame": struct.pack(">ihhih", 10, 3, 4, 1, 30_000),
    "http": b"GET / HTTP/1.1\r\nHost: archive\r\n\r\n",
}


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_frames_close_their_connection_and_no_other(lake: Lake, data: bytes) -> None:
    with served(lake) as (endpoint, other_wire), Wire(endpoint.port) as wire:
        wire.socket.sendall(data)
        assert wire.is_closed()
        assert read_all(other_wire) == list(range(5 * COUNT))


def test_a_frame_that_never_ends_is_given_up(lake: Lake) -> None:
    with served(lake, frame_seconds=0.2) as (_, wire):
        wire.socket.sendall(struct.pack(">i", 1000) + b"\0")
        assert wire.is_closed()


def test_idle_clients_are_let_go(lake: Lake) -> None:
    with served(lake, idle_seconds=0.2) as (_, wire):
        fetch(wire, 0)
        assert wire.is_closed()


def test_no_more_clients_than_allowed(lake: Lake) -> None:
    with served(lake, most_connections=2, most_per_address=2) as (endpoint, first):
        fetch(first, 0)
        with Wire(endpoint.port) as second:
            fetch(second, 0)
            with Wire(endpoint.port) as third:
                assert third.is_closed()
            fetch(first, 0)


def test_who_takes_no_answer_is_let_go(lake: Lake) -> None:
    with served(lake) as (endpoint, other_wire), Wire(endpoint.port) as wire:
        frame = framed(request(1, 12, **wanted(0)), 1)
        wire.socket.settimeout(2)
        with suppress(TimeoutError, ConnectionError):
            for _ in range(100_000):
                wire.send(frame)
        deadline = time.monotonic() + 15
        while endpoint.server.connections > 1:
            assert time.monotonic() < deadline, "the connection stays"
            fetch(other_wire, END, max_wait=timedelta(milliseconds=100))


def test_fetch_of_thousands_of_partitions_yields_turns() -> None:
    asked = request(1, 12, **wanted(0))
    rules = (Rule.parse("User:another", "allow", ("read",), ("*",), ()),)
    session = Session(mechanisms=None, access_of=lambda principal: Access(principal, rules), principal=ANONYMOUS)
    (topic,) = asked.topics
    partitions = tuple(replace(topic.partitions[0], partition=number) for number in range(5000))
    service: Any = SimpleNamespace(traffic=Traffic(), most_response_bytes=lambda: 1 << 20)
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await settle(1)
            turns += 1

    async def run() -> int:
        counting = asyncio.create_task(count())
        await answer_to(
            service,
            Request(
                api_key=1,
                version=12,
                correlation_id=1,
                client_id="",
                body=replace(asked, topics=(replace(topic, partitions=partitions),)),
                client=Client(
                    address="here",
                    login=session,
                    turns=ClientTurns(LoopTime(), "here"),
                    closing_log=ClosingLog(),
                    sessions=FetchSessions(),
                ),
            ),
        )
        counting.cancel()
        return turns

    assert asyncio.run(run()) >= 4
