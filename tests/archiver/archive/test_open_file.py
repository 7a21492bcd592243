"""Damage in a file raises an error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from archiver.archive.batches.wire_columns import ON_THE_WIRE
from archiver.archive.deletes import DeleteFiles
from archiver.archive.mappings import KnownMappings
from archiver.archive.open_file import OpenFile, TopicStorage
from archiver.archive.records import AS_CONSUMED, RecordShape
from archiver.archive.table_files import TableFile, ValueBounds
from archiver.errors import BadSegment
from archiver.storage.formats import FORMATS
from archiver.storage.objects import ObjectStore
from archiver.storage.parquet import file_end
from archiver.storage.parquet.reader import BATCH_ROWS, STREAM_ROWS
from archiver.storage.segment import RowRange, SegmentLayout, SegmentOrigin
from archiver.storage.spool_file import SpoolFile
from schema_mapping.errors import ContextError
from tests.support.archive.archived_rows import KnownMapping, rows_of
from tests.support.storage.footer_flips import all_flips, footer_start, judged, some_flips, without_checksum
from tests.support.storage.parquet_pages import PageHeader, page_headers, with_other_count, without_page

ROWS = 50
ORIGIN = SegmentOrigin(cluster_id="c", topic="t", topic_id="", partition=0, start_offset=0, end_offset=ROWS)
MANY = 45_000
WANTED = RowRange(partition=0, end_offset=MANY, min_timestamp=-1)
NEEDED = ("key.__raw__", "val.__raw__", "headers.list.element.key", "kafka.partition", "kafka.offset")
EQUAL, TOLD, OTHER = range(3)


@pytest.fixture
def local(archive: Any, tmp_path: Path) -> Path:
    return written(archive, tmp_path / "ours.parquet", ROWS)


def written(archive: Any, path: Path, rows: int) -> Path:
    writer = FORMATS.written.start(SpoolFile.create(path), SegmentLayout.of_mapping(archive.rows, archive.properties))
    writer.write(archive.batch(rows_of(archive, range(rows))))
    writer.close(origin=ORIGIN, path="x")
    return path


def opened(archive: Any, path: Path, shape: RecordShape = AS_CONSUMED) -> OpenFile:
    objects = ObjectStore.of({})
    storage = TopicStorage(
        deletes=DeleteFiles(objects, FORMATS),
        objects=objects,
        formats=FORMATS,
        mappings=KnownMappings("t", KnownMapping(archive.rows)),
    )
    file = TableFile(
        path=path.as_uri(),
        format="parquet",
        rows=ROWS,
        size_bytes=path.stat().st_size,
        spec_id=0,
        partition_values=(),
        partitions=ValueBounds(0, 0),
        offsets=ValueBounds(0, ROWS - 1),
        latest=None,
    )
    return OpenFile.open(storage, file, shape)


def records_of(archive: Any, path: Path) -> pa.Table:
    with closing(opened(archive, path)) as file:
        result = [record for block in file.reader.blocks(WANTED) for record in file.records(block, WANTED)]
    return pa.concat_tables([pa.Table.from_batches(result)]) if result else pa.table({})


def kafka_of(archive: Any, path: Path) -> pa.Table:
    with closing(opened(archive, path)) as file:
        result = [value for block in file.reader.blocks(WANTED) for value in file.kafka(block, WANTED)]
    return pa.table({"kafka": pa.chunked_array(result)}) if result else pa.table({})


def judge_of(
    archive: Any, path: Path, read: Callable[[Any, Path], pa.Table] = records_of, rows: int = ROWS
) -> Callable[[], int]:
    sound = read(archive, path)
    assert sound.num_rows == rows

    def judge() -> int:
        try:
            return EQUAL if read(archive, path).equals(sound) else OTHER
        except ContextError as error:
            return OTHER if error.retryable else TOLD

    return judge


def test_a_flipped_bit_in_a_footer_is_told_and_changes_no_record(archive: Any, local: Path):
    """A flip in the checksum's mark only removes the checksum."""
    flips = all_flips(local.read_bytes())
    result = judged(local, flips, judge_of(archive, local))
    assert [flip for flip, value in zip(flips, result, strict=True) if value == OTHER] == []
    start = footer_start(local.read_bytes())
    assert {at for (at, _), value in zip(flips, result, strict=True) if value == EQUAL} == set(range(start - 8, start))


def test_bit_flip_in_bare_footer_ends_no_process(archive: Any, local: Path):
    """Other engines write such files. Wrong bounds and ids go unnoticed."""
    local.write_bytes(without_checksum(local.read_bytes()))
    flips = some_flips(local.read_bytes(), 1_500)
    result = judged(local, flips, judge_of(archive, local))
    assert {EQUAL, TOLD} <= {*result}
    assert sum(value == OTHER for value in result) < len(result) // 20


@pytest.mark.parametrize("read", [records_of, kafka_of])
def test_bit_flip_in_page_header_changes_no_record(archive: Any, local: Path, read: Callable[[Any, Path], pa.Table]):
    """No checksum covers page headers."""
    pages = [header for header in page_headers(local.read_bytes()) if header.column in NEEDED]
    flips = [(at, bit) for page in pages for at in range(page.start, page.end) for bit in range(8)]
    result = judged(local, flips, judge_of(archive, local, read))
    assert [flip for flip, value in zip(flips, result, strict=True) if value == OTHER] == []
    assert {EQUAL, TOLD} == {*result}


@pytest.mark.parametrize(
    ("read", "needed"),
    [
        (records_of, NEEDED),
        (kafka_of, ("kafka.partition", "kafka.offset")),
    ],
)
def test_a_page_that_pyarrow_leaves_out_is_told(
    archive: Any, tmp_path: Path, read: Callable[[Any, Path], pa.Table], needed: tuple[str, ...]
):
    """pyarrow silently skips the page and returns the rows of the other pages."""
    path = written(archive, tmp_path / "many.parquet", MANY)
    whole = path.read_bytes()
    judge = judge_of(archive, path, read, MANY)
    pages = [header for header in page_headers(whole) if header.is_data and header.column in needed]
    assert len(pages) >= 2 * len(needed)
    for page in pages:
        path.write_bytes(without_page(whole, page))
        assert judge() == TOLD, page


def test_another_number_of_values_in_a_page_header_is_told(archive: Any, local: Path):
    """pyarrow takes an extra value for a null and shifts the following ones."""
    table, about = pq.read_table(local), pq.read_metadata(local).metadata
    small = {"data_page_size": 64, "write_batch_size": 10, "use_dictionary": False}
    pq.write_table(table.replace_schema_metadata(about), local, **small)
    whole = local.read_bytes()
    judge = judge_of(archive, local)
    pages = [header for header in page_headers(whole) if header.is_data and header.column in NEEDED]
    assert len(pages) > 2 * len(NEEDED)
    for page in pages:
        for bit in range(6):
            local.write_bytes(with_other_count(whole, page, bit))
            assert judge() == TOLD, (page, bit)


@pytest.mark.parametrize("is_fetched", [False, True], ids=["in memory", "fetched"])
def test_skipped_page_is_noticed_before_any_record(
    archive: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_fetched: bool
):
    """Later records would have values of other rows."""
    if is_fetched:
        monkeypatch.setattr(file_end, "TAIL", 1024)
    path = written(archive, tmp_path / "many.parquet", MANY)
    whole = path.read_bytes()
    sound = list(first_records(archive, path))
    assert len(sound) > 1
    first: dict[str, PageHeader] = {}
    for page in page_headers(whole):
        if page.is_data and page.column in (*NEEDED, "headers.list.element.value", "kafka.event_timestamp"):
            first.setdefault(page.column, page)
    assert len(first) == len(NEEDED) + 2
    for page in first.values():
        path.write_bytes(without_page(whole, page))
        records = first_records(archive, path)
        with pytest.raises(BadSegment, match="as many values"):
            next(records)


def first_records(archive: Any, path: Path) -> Iterator[pa.RecordBatch]:
    with closing(opened(archive, path)) as file:
        for block in file.reader.blocks(WANTED):
            yield from file.records(block, WANTED)


def test_damage_in_a_footer_says_what_to_do(archive: Any, local: Path):
    hurt = bytearray(local.read_bytes())
    hurt[-100] ^= 1
    local.write_bytes(hurt)
    with pytest.raises(BadSegment, match="restore the file from a backup") as raised:
        records_of(archive, local)
    assert raised.value.context["file"] == local.as_uri()
    assert not raised.value.retryable


@pytest.mark.parametrize("start", [0, 1, 20_000, MANY - 1])
def test_a_server_reads_from_a_blocks_begin_in_larger_pieces(archive: Any, tmp_path: Path, start: int) -> None:
    path = written(archive, tmp_path / "many.parquet", MANY)
    expected = RowRange(partition=0, start_offset=start, end_offset=MANY)
    with closing(opened(archive, path, ON_THE_WIRE)) as file:
        (block,) = file.reader.blocks()
        records = list(file.records(block, expected))
    assert [offset for item in records for offset in item.column("offset").to_pylist()] == list(range(start, MANY))
    assert max(batch.num_rows for batch in records) <= (STREAM_ROWS if start == 0 else BATCH_ROWS)
    assert (records[0].num_rows == STREAM_ROWS) is (start == 0)
