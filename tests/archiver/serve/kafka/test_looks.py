"""How often fetches reload the table."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from kio.schema.errors import ErrorCode

from archiver.errors import StorageUnavailable
from archiver.serve.reading import ServedTopic, SpilledChunks
from tests.support.archive.archived_batches import ROWS, archived, records_in, split
from tests.support.archive.lake import Lake
from tests.support.kafka.record_batches import Record, build
from tests.support.servers.nodes_in_memory import NodesInMemory
from tests.support.servers.served_lake import ServedLake, Wire, request, served

ORDERS = "orders"
END = 200
PARTITIONS = 60
SECONDS = 20.0


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    batches = [build([Record(value=b"x" * 200)] * 5, base_offset=at, leader_epoch=0) for at in range(0, END, 5)]
    return archived(tmp_path / "lake", b"".join(batches), end=END, files=4)


class Loads:
    def __init__(self, lake: Lake, *, at_once: int = 1) -> None:
        self.count = 0
        self._meeting = threading.Barrier(at_once, timeout=SECONDS / 2)
        self.gate = threading.Event()
        self.gate.set()
        self.error: Exception | None = None
        self._load = lake.load
        lake.load = self._counted  # type: ignore[method-assign]

    def _counted(self, topic: str) -> Any:
        self.count += 1
        self._meeting.wait()
        assert self.gate.wait(SECONDS)
        if self.error is not None:
            raise self.error
        return self._load(topic)


def fetch(wire: Wire, *offsets: tuple[int, int], **changes: Any) -> Any:
    asked = request(1, 12, topic=ORDERS, **_VALUES | changes)
    topic = asked.topics[0]
    partitions = tuple(
        type(topic.partitions[0])(
            partition=partition,
            current_leader_epoch=topic.partitions[0].current_leader_epoch,
            fetch_offset=offset,
            last_fetched_epoch=topic.partitions[0].last_fetched_epoch,
            log_start_offset=topic.partitions[0].log_start_offset,
            partition_max_bytes=1 << 20,
        )
        for partition, offset in offsets
    )
    return wire.ask(replace(asked, topics=(replace(topic, partitions=partitions),))).responses[0].partitions


_VALUES: dict[str, Any] = {
    "max_bytes": 1 << 20,
    "min_bytes": 1,
    "session_id": 0,
    "session_epoch": -1,
    "forgotten_topics_data": (),
}


def offsets_in(records: bytes) -> set[int]:
    return {offset for batch in split(records) for offset in records_in(batch).column("offset").to_pylist()}


def open_topic(endpoint: ServedLake) -> ServedTopic:
    return endpoint.topics.open[0]


def without_20_to_40(table: pa.Table) -> pa.Table:
    offsets = pc.struct_field(table["kafka"], "offset")
    return table.filter(pc.or_(pc.less(offsets, 20), pc.greater_equal(offsets, 40)))


@contextmanager
def two_nodes(lake: Lake, **options: Any) -> Iterator[Wire]:
    with served(lake, **options) as (endpoint, wire):
        endpoint.cluster._has_others = True
        yield wire


def test_partitions_ahead_share_a_look_and_block_no_read(lake: Lake) -> None:
    for partition in range(1, PARTITIONS):
        lake.add(ROWS, None, 0, 1, partition=partition)
    with served(lake, interval=30.0) as (endpoint, wire):
        loads = Loads(lake)
        ahead = [(partition, 1000) for partition in range(1, PARTITIONS)]
        began = time.monotonic()
        partitions = fetch(wire, (0, 0), *ahead)
        assert time.monotonic() - began < 5.0
        assert offsets_in(partitions[0].records) >= {0}
        assert {result.error_code for result in partitions[1:]} == {ErrorCode.offset_not_available}
        assert loads.count == 0, "the last look is younger than the interval"
        topic = open_topic(endpoint)
        topic._looked_at -= 30.0
        topic._seen_at -= 15.0
        fetch(wire, (0, 0), *ahead)
        assert loads.count == 1


def test_client_from_another_node_triggers_one_look(lake: Lake) -> None:
    for partition in range(1, PARTITIONS):
        lake.add(ROWS, None, 0, 1, partition=partition)
    with two_nodes(lake, interval=30.0) as wire:
        loads = Loads(lake)
        places = [(partition, 1000) for partition in range(PARTITIONS)] + [
            (PARTITIONS + number, 0) for number in range(50)
        ]
        fetch(wire, *places)
        assert loads.count == 1
        fetch(wire, *places[:PARTITIONS])
        assert loads.count == 1, "it was told already that this is beyond the end"


def test_positions_ahead_in_many_topics_wait_at_once(lake: Lake) -> None:
    names = with_more_topics(lake)
    with two_nodes(lake, interval=30.0) as wire:
        loads = Loads(lake, at_once=3)
        asked = request(1, 12, topic=ORDERS, partition=0, fetch_offset=1000, **_VALUES)
        (named,) = asked.topics
        answer = wire.ask(replace(asked, topics=tuple(replace(named, topic=name) for name in names)))
        errors = [topic.partitions[0].error_code for topic in answer.responses]
        assert errors == [ErrorCode.offset_not_available] * len(names)
        assert loads.count == len(names)


@pytest.mark.parametrize(("api_key", "field"), [(2, "name"), (23, "topic")])
def test_ends_of_many_topics_are_looked_up_at_once(lake: Lake, api_key: int, field: str) -> None:
    names = with_more_topics(lake)
    with two_nodes(lake, interval=30.0) as wire:
        loads = Loads(lake, at_once=3)
        values = {"timestamp": -1, "partition_index": 0} if api_key == 2 else {"partition": 0, "leader_epoch": 0}
        asked = request(api_key, 4, **{field: ORDERS}, **values)
        (named,) = asked.topics
        topics = [replace(named, **{field: name}) for name in names] * 2
        assert len(wire.ask(replace(asked, topics=tuple(topics))).topics) == 2 * len(names)
        assert loads.count == len(names)


def test_a_position_ahead_waits_for_no_hanging_catalog(lake: Lake) -> None:
    lake.add(ROWS, None, 0, 1, partition=1)
    with two_nodes(lake, interval=30.0) as wire:
        fetch(wire, (0, 0))
        loads = Loads(lake)
        loads.gate.clear()
        began = time.monotonic()
        first, ahead = fetch(wire, (0, 0), (1, 1000))
        assert time.monotonic() - began < SECONDS / 2
        assert 0 in offsets_in(first.records)
        assert ahead.error_code == ErrorCode.offset_not_available
        loads.gate.set()


def with_more_topics(lake: Lake) -> list[str]:
    names = [ORDERS, *(f"orders-{number}" for number in range(11))]
    lake.topics = lambda _known=(): tuple(names)  # type: ignore[method-assign]
    lake.names = lambda: frozenset(f"kafka.{name}" for name in names)  # type: ignore[method-assign]
    return names


@pytest.mark.parametrize("is_slow", [False, True])
def test_removed_records_are_served_at_most_one_interval(lake: Lake, tmp_path: Path, is_slow: bool) -> None:
    spilled = SpilledChunks(tmp_path, 64 << 20) if is_slow else None
    interval = 1.0
    with served(lake, interval=interval, spilled=spilled) as (endpoint, wire):
        size = 1000 if is_slow else 1 << 20

        def read() -> set[int]:
            seen: set[int] = set()
            position = 0
            while position < END:
                (partition,) = fetch(wire, (0, position), max_bytes=size)
                seen |= offsets_in(partition.records)
                position = max(offsets_in(partition.records), default=position) + 1
            return seen

        assert read() == set(range(END))
        lake.rewrite(without_20_to_40)
        removed_at = time.monotonic()
        while time.monotonic() - removed_at < interval + 1.0:
            began = time.monotonic()
            (partition,) = fetch(wire, (0, 20), max_bytes=size)
            if began - removed_at > interval:
                assert not offsets_in(partition.records) & set(range(20, 40)), began - removed_at
        assert read() == set(range(20)) | set(range(40, END))
        assert endpoint.reader.hits > 0


def test_no_node_gives_removed_records_after_a_look(lake: Lake) -> None:
    nodes = NodesInMemory()
    with served(lake, interval=30.0, nodes=nodes) as first, served(lake, interval=30.0, nodes=nodes) as second:
        for _, wire in (first, second):
            assert read_in_small_steps(wire) == set(range(END))
        lake.rewrite(without_20_to_40)
        for endpoint, wire in (first, second):
            endpoint.call(open_topic(endpoint).caught_up())
            assert read_in_small_steps(wire) == set(range(20)) | set(range(40, END))
            assert endpoint.reader.hits > 0


def read_in_small_steps(wire: Wire) -> set[int]:
    seen: set[int] = set()
    position = 0
    while position < END:
        (partition,) = fetch(wire, (0, position), max_bytes=1000)
        seen |= offsets_in(partition.records)
        position = max(offsets_in(partition.records), default=position) + 1
    return seen


def test_a_loaded_chunk_of_a_rewritten_table_is_dropped(lake: Lake) -> None:
    with served(lake, interval=30.0, cache=1) as (endpoint, wire):
        fetch(wire, (0, END))
        topic, load, rewrites = open_topic(endpoint), endpoint.reader.load, iter([True])

        async def rewritten(loaded: asyncio.Task[Any]) -> Any:
            chunk = await loaded
            if next(rewrites, False):
                lake.rewrite(without_20_to_40)
                await topic.caught_up()
            return chunk

        endpoint.reader.load = lambda *given, **options: asyncio.ensure_future(  # type: ignore[method-assign]
            rewritten(load(*given, **options))
        )
        assert 25 not in offsets_in(fetch(wire, (0, 0))[0].records)
        assert topic.edition == 1


def test_waiting_answers_drop_batches_of_a_rewritten_table(lake: Lake) -> None:
    with served(lake, interval=30.0) as (endpoint, wire):
        fetch(wire, (0, 0))
        topic = open_topic(endpoint)
        many = [(partition, 0) for partition in range(3000)]
        assert 25 in offsets_in(fetch(wire, *many)[0].records)
        loop_time, jobs = endpoint.server.loop_time, count()
        in_thread = loop_time.in_thread

        async def late(client: Any, work: Any) -> Any:
            if next(jobs) == 1:  # the first one decodes the request
                lake.rewrite(without_20_to_40)
                await topic.caught_up()
            return await in_thread(client, work)

        loop_time.in_thread = late  # type: ignore[method-assign]
        assert 25 not in offsets_in(fetch(wire, *many)[0].records)
        assert topic.edition == 1
        assert next(jobs) == 3, "the answer is packed again"
        assert 0 in offsets_in(fetch(wire, (0, 0))[0].records)


def test_first_fetch_after_a_pause_omits_removed_records(lake: Lake) -> None:
    with served(lake, interval=30.0) as (endpoint, wire):
        assert 25 in offsets_in(fetch(wire, (0, 0))[0].records)
        lake.rewrite(without_20_to_40)
        assert 25 in offsets_in(fetch(wire, (0, 0))[0].records), "the last look is younger than the interval"
        topic = open_topic(endpoint)
        topic._looked_at -= 30.0
        topic._seen_at -= 30.0
        assert 25 not in offsets_in(fetch(wire, (0, 0))[0].records)


def test_memory_readers_trigger_a_look_before_they_wait(lake: Lake) -> None:
    with served(lake, interval=30.0) as (endpoint, wire):
        fetch(wire, (0, 0))
        loads = Loads(lake)
        loads.gate.clear()
        topic = open_topic(endpoint)
        topic._seen_at -= 25.0
        began = time.monotonic()
        assert 0 in offsets_in(fetch(wire, (0, 0))[0].records)
        assert time.monotonic() - began < 5.0
        loads.gate.set()
        until = time.monotonic() + SECONDS
        while endpoint.call(_age(topic)) > 15.0:
            assert time.monotonic() < until
        assert loads.count == 1


def test_a_catalog_that_hangs_or_is_away_stops_no_reader(lake: Lake) -> None:
    with served(lake, interval=0.5) as (endpoint, wire):
        fetch(wire, (0, 0))
        loads = Loads(lake)
        loads.gate.clear()
        began = time.monotonic()
        count = 0
        while time.monotonic() - began < 3.0:
            assert 0 in offsets_in(fetch(wire, (0, 0))[0].records)
            count += 1
        assert count > 10, "one wait of an interval, and no more"
        loads.error = StorageUnavailable("the catalog is away")
        loads.gate.set()
        began, count = time.monotonic(), 0
        while time.monotonic() - began < 3.0:
            assert 0 in offsets_in(fetch(wire, (0, 0))[0].records)
            count += 1
        assert count > 10
        assert loads.count < 10
        assert open_topic(endpoint).trouble is not None


async def _age(topic: ServedTopic) -> float:
    return asyncio.get_running_loop().time() - topic._seen_at


@pytest.mark.parametrize(
    ("begins", "partitions", "ends"),
    [
        ({}, 1, [END]),
        ({0: 0, 1: 0, 2: 500, 3: 0}, 4, [END, 0, 500, 0]),
    ],
)
def test_there_are_as_many_partitions_as_the_topic_had(
    lake: Lake, begins: dict[int, int], partitions: int, ends: list[int]
) -> None:
    with served(lake, begins=lambda: begins) as (_, wire):
        (topic,) = wire.ask(request(3, 12, topic_id=None, name=ORDERS)).topics
        assert sorted(partition.partition_index for partition in topic.partitions) == list(range(partitions))

        def place(partition: int, time: int) -> int:
            asked = request(2, 8, name=ORDERS, timestamp=time, partition_index=partition)
            (listed,) = wire.ask(asked).topics[0].partitions
            assert listed.error_code == ErrorCode.none
            offset: int = listed.offset
            return offset

        assert [place(partition, -1) for partition in range(partitions)] == ends
        assert [place(partition, -2) for partition in range(partitions)] == [0, *ends[1:]]
        fetched = fetch(wire, *enumerate(ends))
        assert {(item.error_code, item.records) for item in fetched} == {(ErrorCode.none, b"")}


def test_empty_partitions_appear_and_get_records_at_begin(lake: Lake) -> None:
    begins = {0: 0}
    with served(lake, begins=lambda: dict(begins)) as (endpoint, wire):
        begins.update({1: 7, 2: 0})
        log = build([Record(value=b"y")] * 5, base_offset=END, leader_epoch=0)
        more = archived(lake.folder.parent / "more", log, end=END + 5)
        lake.insert(pa.concat_tables(_tables(more)))
        until = time.monotonic() + SECONDS
        while open_topic(endpoint).partitions < 3:
            fetch(wire, (0, END + 5))
            assert time.monotonic() < until
        assert fetch(wire, (1, 7))[0].error_code == ErrorCode.none
        lake.add(ROWS, None, 7, 9, partition=1)
        while (partition := fetch(wire, (1, 7))[0]).high_watermark < 9:
            assert partition.error_code == ErrorCode.none
            assert time.monotonic() < until
        assert (partition.error_code, partition.log_start_offset) == (ErrorCode.none, 7)


def _tables(lake: Lake) -> list[pa.Table]:
    return [
        pq.read_table(file.file_path.removeprefix("file://")).replace_schema_metadata(None) for file in lake.files()
    ]
