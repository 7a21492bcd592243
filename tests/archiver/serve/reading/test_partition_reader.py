"""Decoding ahead of a reader is bounded."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from tests.support.archive.archived_batches import archived, split
from tests.support.archive.lake import Lake
from tests.support.kafka.record_batches import Record, build
from tests.support.servers.served_lake import ServedLake, Wire, request

COUNT = 60
BATCHES = [build([Record(value=b"x" * 200)] * 5, base_offset=at, leader_epoch=0) for at in range(0, 5 * COUNT, 5)]
END = 5 * COUNT
CHUNK = 3_000
AHEAD = 4 * CHUNK


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return archived(tmp_path / "lake", b"".join(BATCHES), end=END, files=4)


@contextmanager
def reading(lake: Lake, read_ahead: int) -> Iterator[tuple[ServedLake, Wire]]:
    with ServedLake(lake, read_ahead=read_ahead, chunk_bytes=CHUNK) as endpoint, Wire(endpoint.port) as wire:
        yield endpoint, wire


def fetch(wire: Wire, offset: int) -> int:
    answer = wire.ask(
        request(
            1,
            12,
            topic="orders",
            partition=0,
            fetch_offset=offset,
            max_bytes=CHUNK,
            partition_max_bytes=CHUNK,
            min_bytes=1,
            max_wait=timedelta(0),
            session_id=0,
            session_epoch=-1,
            forgotten_topics_data=(),
        )
    )
    return offset + 5 * len(split(answer.responses[0].partitions[0].records))


def settled(endpoint: ServedLake) -> int:
    async def idle() -> None:
        while loads := list(endpoint.reader._loads.values()):
            await asyncio.wait(loads)

    endpoint.call(idle())
    return endpoint.reader.misses


def test_a_reader_that_goes_on_finds_the_next_chunks_decoded(lake: Lake) -> None:
    with reading(lake, AHEAD) as (endpoint, wire):
        position = fetch(wire, fetch(wire, 0))
        decoded = settled(endpoint)
        assert 4 <= decoded <= 8
        fetch(wire, position)
        assert endpoint.reader.hits > 0
        assert settled(endpoint) > decoded, "it goes on ahead of the reader"


def test_nothing_is_decoded_ahead_where_none_is_wanted(lake: Lake) -> None:
    with reading(lake, 0) as (endpoint, wire):
        position = 0
        for _ in range(3):
            position = fetch(wire, position)
        assert settled(endpoint) == 3
