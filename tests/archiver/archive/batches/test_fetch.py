"""Fetches: budget, cursor, closing, errors."""

from __future__ import annotations

import gc
import weakref
from contextlib import closing
from itertools import accumulate, count
from pathlib import Path
from typing import Any

import pytest

from archiver.archive.batches import ArchivedBatches, BatchCursor, BatchOptions, BatchSizes
from archiver.codecs import Codec
from archiver.errors import ObjectMissing, ReplayError
from archiver.storage.formats import SegmentFormats
from archiver.storage.parquet import ParquetFormat
from tests.support.archive.archived_batches import (
    ROWS,
    KnownRows,
    archived,
    data_of,
    fetches,
    header_of,
    records_in,
    split,
)
from tests.support.archive.lake import Lake
from tests.support.kafka.record_batches import Record, build, marker

BATCHES = [
    build([Record(value=b"x" * (10 * size))] * 3, base_offset=at, producer_id=at, leader_epoch=2)
    for at, size in ((0, 1), (3, 50), (6, 2), (20, 3), (23, 1))
]
SIZES = [len(value) for value in BATCHES]
ENDS = [3, 6, 9, 23, 30]
END = 30


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """Shared: tests don't change it."""
    return archived(tmp_path_factory.mktemp("lake"), b"".join(BATCHES), end=END, files=5)


@pytest.fixture
def fresh_log(tmp_path: Path) -> Lake:
    return archived(tmp_path / "lake", b"".join(BATCHES), end=END, files=5)


def at(offset: int) -> BatchCursor:
    return BatchCursor(partition=0, offset=offset)


@pytest.mark.parametrize(
    "max_bytes", sorted({edge + by for edge in accumulate(SIZES) for by in (-1, 0, 1)} | {0, 1, 10**9})
)
@pytest.mark.parametrize("must_give", [True, False])
@pytest.mark.parametrize("open_streams", [0, 4])
def test_as_many_batches_as_fit(log: Lake, max_bytes: int, *, must_give: bool, open_streams: int):
    fitting = sum(total <= max_bytes for total in accumulate(SIZES))
    expected = max(fitting, int(must_give))
    with ArchivedBatches(log.archive(), BatchOptions(open_streams=open_streams)) as source:
        result = source.fetch(at(0), max_bytes, must_give=must_give)
        assert data_of(result) == b"".join(BATCHES[:expected])
        assert result.cursor == at(0 if expected == 0 else ENDS[expected - 1] if expected < 5 else result.cursor.offset)
        assert result.end == END
        rest = b"".join(data_of(fetch) for fetch in fetches(source, 10**9, start=result.cursor.offset))
        assert data_of(result) + rest == b"".join(BATCHES)


def test_what_did_not_fit_is_given_next(log: Lake):
    with ArchivedBatches(log.archive()) as source:
        assert source.fetch(at(0), 70, must_give=False).parts == ()
        assert data_of(source.fetch(at(0), SIZES[0], must_give=False)) == BATCHES[0]
        assert source.fetch(at(3), SIZES[1] - 1, must_give=False).cursor == at(3)
        assert data_of(source.fetch(at(3), SIZES[1], must_give=False)) == BATCHES[1]


def test_read_from_mid_batch_returns_the_rest_of_it(log: Lake):
    with ArchivedBatches(log.archive()) as source:
        for start in (4, 5):
            result = source.fetch(at(start), 1)
            (batch,) = split(data_of(result))
            whole, ours = header_of(BATCHES[1]), header_of(batch)
            changed = {"length", "crc", "count"}
            assert {name for name in whole if whole[name] != ours[name]} == changed
            assert records_in(batch)["offset"].to_pylist() == list(range(start, 6))
            assert result.cursor == at(6)


class CountingFormat:
    name, extension = "parquet", "parquet"

    def __init__(self) -> None:
        self.opened: list[str] = []
        self.readers: list[Any] = []

    def open(self, objects: Any, path: str, **options: Any) -> Any:
        self.opened.append(path)
        self.readers.append(ParquetFormat().open(objects, path, **options))
        return self.readers[-1]

    def describe(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    start = describe

    @property
    def still_open(self) -> int:
        return sum(not reader._stream.closed for reader in self.readers)


def test_a_reader_that_comes_back_finds_its_files_open(log: Lake):
    counting = CountingFormat()
    with ArchivedBatches(log.archive(formats=SegmentFormats(written=counting))) as source:
        assert b"".join(data_of(fetch) for fetch in fetches(source, 1)) == b"".join(BATCHES)
        assert len(counting.opened) == len(set(counting.opened)) == len(log.files())
    assert counting.still_open == 0


def test_files_before_the_cursor_are_not_opened(log: Lake):
    counting = CountingFormat()
    with ArchivedBatches(log.archive(formats=SegmentFormats(written=counting)), BatchOptions(open_streams=0)) as source:
        assert data_of(source.fetch(at(23), 1)) == BATCHES[4]
    assert len(counting.opened) == 1


class NotedBlocks:
    def __init__(self, reader: Any, read: list[int]) -> None:
        self._reader = reader
        self._read = read

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reader, name)

    def read(self, block: Any, field_ids: Any = None, **options: Any) -> Any:
        self._read.append(block.index)
        return self._reader.read(block, field_ids, **options)


class NotingFormat(CountingFormat):
    def __init__(self) -> None:
        super().__init__()
        self.read: list[int] = []

    def open(self, objects: Any, path: str, **options: Any) -> Any:
        return NotedBlocks(super().open(objects, path, **options), self.read)


def test_parts_before_cursor_and_after_budget_are_not_read(fresh_log: Lake):
    fresh_log.rewrite(row_group_size=3)
    noting = NotingFormat()
    archive = fresh_log.archive(formats=SegmentFormats(written=noting), registry=lambda *_: KnownRows())
    with ArchivedBatches(archive, BatchOptions(open_streams=0)) as source:
        assert data_of(source.fetch(at(6), 1)) == BATCHES[2]
    assert len(noting.read) == 1
    with ArchivedBatches(archive, BatchOptions(open_streams=0, spans_gaps=True)) as source:
        result = source.fetch(at(6), 1)
    assert (result.cursor, len(noting.read)) == (at(20), 3), (
        "the batch itself, and the next one, up to which it reaches"
    )


def test_only_so_many_readers_are_kept(log: Lake):
    counting = CountingFormat()
    with ArchivedBatches(log.archive(formats=SegmentFormats(written=counting)), BatchOptions(open_streams=2)) as source:
        for offset in (0, 1, 2, 3, 4):
            source.fetch(at(offset), 1, compression=Codec.NONE)
            assert counting.still_open <= 2
        assert counting.still_open <= 2 * 2
    assert counting.still_open == 0


@pytest.mark.parametrize("way", ["fetch", "run"])
def test_a_closed_stream_leaves_nothing_to_the_collector(log: Lake, way: str):
    """An open file holds a row group until it is collected."""
    counting = CountingFormat()
    source = ArchivedBatches(log.archive(formats=SegmentFormats(written=counting)), BatchOptions(open_streams=0))
    gc.collect()
    gc.disable()
    try:
        for start in (0, 4, 23):
            if way == "fetch":
                source.fetch(at(start), 1)
            else:
                with closing(source.run(at(start), 1)) as run:
                    next(run)
        readers = [weakref.ref(reader) for reader in counting.readers]
        counting.readers.clear()
        assert len(readers) >= 3
        assert [reader() for reader in readers] == [None] * len(readers)
    finally:
        gc.enable()


@pytest.mark.parametrize("max_bytes", [1, SIZES[1], 10**9])
def test_a_run_gives_what_fetches_give_and_opens_each_file_once(log: Lake, max_bytes: int):
    counting = CountingFormat()
    archive = log.archive(formats=SegmentFormats(written=counting))
    with ArchivedBatches(archive, BatchOptions(open_streams=0)) as source:
        result = list(source.run(at(0), max_bytes))
        assert (len(counting.opened), counting.still_open) == (5, 0)
        assert b"".join(map(data_of, result)) == b"".join(BATCHES)
        assert [item.cursor for item in result] == [fetch.cursor for fetch in fetches(source, max_bytes)]


def test_an_error_ends_a_run_after_what_came_before_it(fresh_log: Lake):
    broken = sorted(file.file_path for file in fresh_log.files())[2].removeprefix("file://")
    Path(broken).unlink()
    with ArchivedBatches(fresh_log.archive()) as source:
        run = source.run(at(0), 1)
        assert [next(run).cursor.offset, next(run).cursor.offset] == [3, 6]
        with pytest.raises(ObjectMissing):
            next(run)


def test_after_closing_nothing_is_given(log: Lake):
    source = ArchivedBatches(log.archive())
    source.fetch(at(0), 1)
    source.close()
    source.close()
    with pytest.raises(ReplayError, match=r"closed.*topic='orders', partition=0, offset=3"):
        source.fetch(at(3), 1)


def test_close_during_a_running_call_leaves_no_open_file(log: Lake):
    counting = CountingFormat()
    source = ArchivedBatches(log.archive(formats=SegmentFormats(written=counting)))

    def closing() -> bool:
        source.close()
        return False

    assert data_of(source.fetch(at(0), 1, is_cancelled=closing)) == BATCHES[0]
    assert counting.still_open == 0


@pytest.mark.parametrize("patience", range(5))
def test_a_cancelled_call_gives_what_it_has(log: Lake, patience: int):
    with ArchivedBatches(log.archive()) as source:
        passed = count()
        result = source.fetch(at(0), 10**9, is_cancelled=lambda: next(passed) >= patience)
        rest = [data_of(fetch) for fetch in fetches(source, 10**9, start=result.cursor.offset)]
        assert data_of(result) + b"".join(rest) == b"".join(BATCHES)
        assert patience or not result.parts


def test_lost_file_is_reported_after_earlier_batches(fresh_log: Lake):
    lost = sorted(file.file_path for file in fresh_log.files())[1]
    Path(lost.removeprefix("file://")).unlink()
    with ArchivedBatches(fresh_log.archive()) as source:
        result = source.fetch(at(0), 10**9)
        assert data_of(result) == BATCHES[0]
        for _ in range(2):
            with pytest.raises(ObjectMissing, match=r"topic='orders', partition=0, offset=3"):
                source.fetch(result.cursor, 10**9)
        assert data_of(source.fetch(at(23), 10**9)) == BATCHES[4]


@pytest.mark.parametrize("start", [30, 31, 1000])
def test_nothing_at_the_end(log: Lake, start: int):
    with ArchivedBatches(log.archive(), BatchOptions(spans_gaps=True)) as source:
        result = source.fetch(at(start), 10**9)
        assert (result.parts, result.cursor, result.end) == ((), at(start), END)


@pytest.mark.parametrize("start", range(26, 30))
def test_offsets_without_records_are_stepped_over(log: Lake, start: int):
    with ArchivedBatches(log.archive()) as source:
        result = source.fetch(at(start), 1)
        assert (result.parts, result.cursor) == ((), at(END))
    with ArchivedBatches(log.archive(), BatchOptions(spans_gaps=True)) as source:
        assert source.fetch(at(start), 60, must_give=False).cursor == at(start)
        result = source.fetch(at(start), 60)
        assert records_in(data_of(result)).num_rows == 0
        assert header_of(data_of(result))["base_offset"] == start
        assert result.cursor == at(END)


def test_what_is_archived_later_is_given_after_a_refresh(fresh_log: Lake):
    archive = fresh_log.archive()
    with ArchivedBatches(archive, BatchOptions(spans_gaps=True)) as source:
        *_, last = fetches(source, 10**9)
        assert last.cursor == at(END)
        fresh_log.add(ROWS, None, END, END + 5)
        assert source.fetch(last.cursor, 10**9).cursor == at(END)
        archive.refresh()
        result = source.fetch(last.cursor, 10**9)
        assert (header_of(data_of(result))["last_delta"], result.cursor) == (4, at(END + 5))


def test_a_batch_too_large_to_hold_comes_in_parts(tmp_path: Path):
    most = 1 << 20
    batch = build([Record(value=b"x" * 20_000)] * 400, base_offset=5, producer_id=3, producer_epoch=0, base_sequence=7)
    archive = archived(tmp_path, batch, end=405).archive()
    with ArchivedBatches(archive, BatchOptions(sizes=BatchSizes(largest=most))) as source:
        parts = [data_of(fetch) for fetch in fetches(source, 1)]
    assert len(parts) == 8
    assert all(len(part) < most + 21_000 for part in parts)
    assert records_in(b"".join(parts))["offset"].to_pylist() == list(range(5, 405))
    headers = list(map(header_of, parts))
    assert [header["base_sequence"] - header["base_offset"] for header in headers] == [2] * 8
    ends = [header["base_offset"] + header["last_delta"] + 1 for header in headers]
    assert ends == [*(header["base_offset"] for header in headers[1:]), 405]


def test_a_partition_that_is_not_archived_has_no_batches(log: Lake):
    with ArchivedBatches(log.archive()) as source:
        result = source.fetch(BatchCursor(partition=7, offset=0), 10**9)
        assert (result.parts, result.cursor.offset, result.end) == ((), 0, 0)


def test_codecs_by_call(log: Lake):
    with ArchivedBatches(log.archive()) as source:
        for codec in Codec:
            data = b"".join(data_of(fetch) for fetch in fetches(source, 400, compression=codec))
            assert {header_of(value)["attributes"] for value in split(data)} == {codec}
            assert records_in(data)["value"] == records_in(b"".join(BATCHES))["value"]


@pytest.mark.parametrize("cursor", [at(0), BatchCursor(partition=12, offset=2**63 - 1)])
def test_a_cursor_is_text(cursor: BatchCursor):
    assert BatchCursor.parse(cursor.text) == cursor


@pytest.mark.parametrize("text", ["", "1", "1@", "@1", "-1@0", "0@-1", f"0@{2**63}", "a@b"])
def test_other_text_is_no_cursor(text: str):
    with pytest.raises(ValueError):
        BatchCursor.parse(text)


def test_transaction_batches_reach_over_their_marker(tmp_path: Path):
    batch = build([Record()], base_offset=0, producer_id=3, transactional=True)
    lake = archived(tmp_path, batch + marker(base_offset=1, producer_id=3, commit=True), end=2)
    with ArchivedBatches(lake.archive(), BatchOptions(spans_gaps=True)) as source:
        result = source.fetch(at(0), 1)
        header = header_of(data_of(result))
        assert (header["last_delta"], header["attributes"], result.cursor) == (1, 0b10000, at(2))
