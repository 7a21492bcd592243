"""Slow readers share decoded data."""

from __future__ import annotations

import asyncio
import errno
import os
import struct
import tempfile
import time
from contextlib import AbstractContextManager, ExitStack
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from kio.schema.errors import ErrorCode

from archiver.config import load_config
from archiver.errors import ConfigError
from archiver.serve.kafka import pace
from archiver.serve.kafka.endpoint import Endpoint
from archiver.serve.reading import SpilledChunks
from archiver.storage.formats import SegmentFormats
from archiver.storage.parquet import ParquetFormat
from catalog.errors import CatalogUnreachable
from tests.support.archive.archived_batches import archived, records_in, split
from tests.support.archive.lake import Lake
from tests.support.kafka.record_batches import Record, build
from tests.support.servers import served_lake
from tests.support.servers.nodes_in_memory import NodesInMemory
from tests.support.servers.served_lake import ServedLake, Wire, request

COUNT = 60
BATCHES = [build([Record(value=b"x" * 200)] * 5, base_offset=at, leader_epoch=0) for at in range(0, 5 * COUNT, 5)]
END = 5 * COUNT + 3
SHARE = 20_000
READERS = 30


def served(lake: Lake, *, chunk_bytes: int = 3_000, **options: Any) -> AbstractContextManager[tuple[ServedLake, Wire]]:
    return served_lake.served(lake, chunk_bytes=chunk_bytes, **options)


@pytest.fixture(autouse=True)
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "SOON_SECONDS", 0.0)
    monkeypatch.setattr(SpilledChunks, "share", SHARE)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return archived(tmp_path / "lake", b"".join(BATCHES), end=END, files=2)


@pytest.fixture
def spilled(tmp_path: Path) -> SpilledChunks:
    return SpilledChunks(tmp_path, 64 << 20)


def fetch(wire: Wire, offset: int, **changes: Any) -> Any:
    asked: dict[str, Any] = {
        "topic": "orders",
        "partition": 0,
        "fetch_offset": offset,
        "max_bytes": 1 << 20,
        "partition_max_bytes": 2_500,
        "min_bytes": 1,
        "max_wait": timedelta(0),
        "session_id": 0,
        "session_epoch": -1,
        "forgotten_topics_data": (),
    }
    (partition,) = wire.ask(request(1, 12, **asked | changes)).responses[0].partitions
    assert partition.error_code == ErrorCode.none, partition.error_code.name
    return partition


class Reader:
    def __init__(self, wire: Wire, position: int) -> None:
        self.wire, self.position = wire, position
        self.batches: list[bytes] = []
        self.has_gap = False

    def read(self) -> bool:
        batches = split(fetch(self.wire, self.position).records)
        for batch in batches:
            base, last = struct.unpack_from(">q", batch)[0], struct.unpack_from(">i", batch, 23)[0]
            assert self.position <= base + last
            self.has_gap |= base > self.position
            self.position = base + last + 1
        self.batches += batches
        return bool(batches)

    def read_all(self) -> None:
        while self.read():
            pass

    @property
    def offsets(self) -> list[int]:
        data = [batch for batch in self.batches if not struct.unpack_from(">h", batch, 21)[0] & 0x20]
        return [offset for data_batch in data for offset in records_in(data_batch).column("offset").to_pylist()]


class CountingFormat:
    name, extension = "parquet", "parquet"

    def __init__(self) -> None:
        self.opened = 0

    def open(self, *given: Any, **options: Any) -> Any:
        self.opened += 1
        return ParquetFormat().open(*given, **options)

    def describe(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    start = describe


@pytest.mark.parametrize("on_disk", [True, False])
def test_many_slow_readers_make_a_file_be_decoded_once(lake: Lake, spilled: SpilledChunks, on_disk: bool) -> None:
    counting = CountingFormat()
    options = {"cache": 1, "spilled": spilled if on_disk else None, "formats": SegmentFormats(written=counting)}
    options |= {"most_connections": 200, "most_per_address": 200}
    with served(lake, **options) as (endpoint, _), ExitStack() as ending:
        readers = [
            Reader(ending.enter_context(Wire(endpoint.port)), 5 * COUNT * number // READERS)
            for number in range(READERS)
        ]
        for slow_reader in readers:
            slow_reader.read()
        counting.opened = 0
        while sum(reader.read() for reader in readers):
            pass
        for number, slow_reader in enumerate(readers):
            first = 5 * COUNT * number // READERS
            assert slow_reader.offsets == list(range(first, 5 * COUNT))
            assert not slow_reader.has_gap
            assert slow_reader.batches[:-1] == BATCHES[first // 5 :]
        shares = sum(map(len, BATCHES)) // SHARE + 3
        if on_disk:
            assert counting.opened <= 2 * shares, "a share of the topic is decoded at a time, once"
            assert endpoint.reader.spilled_hits > endpoint.reader.misses
        else:
            assert counting.opened > 4 * shares, "else there is nothing to mend"


def test_slow_reader_with_large_min_bytes_gets_what_exists(lake: Lake, spilled: SpilledChunks) -> None:
    with served(lake, spilled=spilled, cache=1) as (endpoint, wire):
        fetch(wire, 0)
        hits, began = endpoint.reader.spilled_hits, time.monotonic()
        much = {"min_bytes": 100_000, "partition_max_bytes": 200_000, "max_wait": timedelta(seconds=20)}
        assert fetch(wire, 0, **much).records
        assert endpoint.reader.spilled_hits <= hits + 2, "what isn't kept isn't read again and again"
        assert time.monotonic() - began < 10


@pytest.mark.parametrize("end", [5 * COUNT, END], ids=["records", "no-records"])
def test_a_reader_at_the_end_has_nothing_put_aside(tmp_path: Path, spilled: SpilledChunks, end: int) -> None:
    """Transaction markers at the end are no records."""
    lake = archived(tmp_path / "lake", b"".join(BATCHES), end=end)
    with served(lake, spilled=spilled, cache=1, chunk_bytes=1 << 20) as (endpoint, wire):
        for batches in (1, 2, 1, 2):
            assert fetch(wire, 5 * (COUNT - batches), partition_max_bytes=1 << 20).records
        assert spilled.bytes == 0
        assert endpoint.reader.spilled_hits == 0
        assert endpoint.reader.misses > 1


def test_disk_batches_are_stale_after_a_rewrite(lake: Lake, spilled: SpilledChunks) -> None:
    with served(lake, spilled=spilled, cache=1) as (endpoint, wire):
        reader = Reader(wire, 0)
        reader.read_all()
        assert reader.offsets == list(range(5 * COUNT))
        assert endpoint.reader.spilled_hits
        lake.rewrite(without_20_to_40, drop=True)
        deadline = time.monotonic() + 10
        while endpoint.topics.open[0].edition == 0:
            assert time.monotonic() < deadline
            fetch(wire, END, max_wait=timedelta(milliseconds=100))
        hits = endpoint.reader.spilled_hits
        for _ in range(2):
            again = Reader(wire, 0)
            again.read_all()
            assert again.offsets == [*range(20), *range(40, 5 * COUNT)]
        assert endpoint.reader.spilled_hits > hits


def without_20_to_40(table: pa.Table) -> pa.Table:
    offsets = pc.struct_field(table["kafka"], "offset")
    return table.filter(pc.or_(pc.less(offsets, 20), pc.greater_equal(offsets, 40)))


def test_no_node_gives_removed_records_from_disk(lake: Lake, tmp_path: Path) -> None:
    nodes = NodesInMemory()
    with ExitStack() as parts:
        disks = [SpilledChunks(tmp_path, 64 << 20) for _ in range(2)]
        options = {"cache": 1, "interval": 30.0, "nodes": nodes}
        served_by = [parts.enter_context(served(lake, spilled=disk, **options)) for disk in disks]
        for endpoint, wire in served_by:
            for _ in range(2):
                reader = Reader(wire, 0)
                reader.read_all()
                assert reader.offsets == list(range(5 * COUNT))
            assert endpoint.reader.spilled_hits > 0
        lake.rewrite(without_20_to_40)
        for endpoint, wire in served_by:
            endpoint.call(endpoint.topics.open[0].caught_up())
            hits = endpoint.reader.spilled_hits
            for _ in range(2):
                again = Reader(wire, 0)
                again.read_all()
                assert again.offsets == [*range(20), *range(40, 5 * COUNT)]
            assert endpoint.reader.spilled_hits > hits


def test_rewrite_during_a_spill_leaves_no_stale_chunk(lake: Lake, tmp_path: Path) -> None:
    rewrites = iter([True])

    class Rewriting(SpilledChunks):
        def write(self, chunk: Any) -> Any:
            if reader.offsets and next(rewrites, False):
                lake.rewrite(without_20_to_40, drop=True)
                endpoint.call(look())
            return super().write(chunk)

    spilled = Rewriting(tmp_path, 64 << 20)
    with served(lake, spilled=spilled, cache=1) as (endpoint, wire):
        reader = Reader(wire, 0)
        reader.read()
        topic = endpoint.topics.open[0]

        async def look() -> None:
            await topic.caught_up()

        reader.read()
        assert topic.edition == 1
        again = Reader(wire, 0)
        again.read_all()
        assert again.offsets == [*range(20), *range(40, 5 * COUNT)]


def test_readers_go_on_over_rewrites_without_a_gap_or_a_repeat(lake: Lake, spilled: SpilledChunks) -> None:
    with served(lake, spilled=spilled, cache=1) as (_, wire):
        reader, steps = Reader(wire, 0), 0
        while reader.read():
            steps += 1
            if steps % 10 == 5:
                lake.rewrite(drop=True)
        assert reader.offsets == list(range(5 * COUNT))


def test_what_cannot_be_read_from_disk_is_decoded_again(
    lake: Lake, spilled: SpilledChunks, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    read, calls = os.preadv, count()

    def spoilt(*arguments: Any) -> int:
        if next(calls) % 10 == 9:
            raise OSError(errno.EIO, "Input/output error")
        return read(*arguments)

    monkeypatch.setattr(os, "preadv", spoilt)
    with served(lake, spilled=spilled, cache=1) as (_, wire):
        reader = Reader(wire, 0)
        reader.read_all()
        assert reader.offsets == list(range(5 * COUNT))
        assert any("decoded again" in record.message for record in caplog.records)


def test_a_full_disk_slows_readers_down_and_no_more(
    lake: Lake, spilled: SpilledChunks, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    with served(lake, spilled=spilled) as (_, wire):
        reader = Reader(wire, 0)
        reader.read_all()
        assert reader.offsets == list(range(5 * COUNT))
    assert sum("without a disk" in record.message for record in caplog.records) == 1


def test_an_error_is_told_where_it_is_and_skips_nothing(lake: Lake, spilled: SpilledChunks) -> None:
    with served(lake, spilled=spilled, cache=1) as (_, wire):
        path = Path(max(file.file_path for file in lake.files()).removeprefix("file://"))
        kept = path.read_bytes()
        path.write_bytes(b"not Parquet")
        reader = Reader(wire, 0)
        with pytest.raises(AssertionError, match=r"unknown_server_error|kafka_storage_error"):
            reader.read_all()
        assert 0 < reader.position < 5 * COUNT
        path.write_bytes(kept)
        reader.read_all()
        assert reader.offsets == list(range(5 * COUNT))


CONFIG = """
[kafka]
"bootstrap.servers" = "127.0.0.1:9092"
[catalog]
uri = "http://127.0.0.1:1"
[registry]
dsn = "postgresql://archiver@127.0.0.1:1/archiver"
[serve]
listen = "127.0.0.1:0"
"""


def test_a_folder_that_cannot_be_used_fails_before_any_work(tmp_path: Path) -> None:
    file = tmp_path / "archiver.toml"
    file.write_text(CONFIG + f'disk_cache_folder = "{tmp_path / "missing"}"')
    with pytest.raises(ConfigError, match="No such file") as caught:
        asyncio.run(Endpoint(load_config(file, {})).run(asyncio.Event()))
    assert caught.value.context["key"] == "serve.disk_cache_folder"


@pytest.mark.parametrize("extra", ["", "disk_cache = 0\n"])
def test_a_temporary_folder_that_cannot_be_used_is_done_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, extra: str
) -> None:
    file = tmp_path / "archiver.toml"
    file.write_text(CONFIG + extra)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    with pytest.raises(CatalogUnreachable):  # the catalog isn't there
        asyncio.run(Endpoint(load_config(file, {})).run(asyncio.Event()))
    assert sum("without a disk" in record.message for record in caplog.records) == (not extra)
