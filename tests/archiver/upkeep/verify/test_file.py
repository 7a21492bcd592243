"""Verification of one file."""

from __future__ import annotations

import base64
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow.parquet import encryption

from archiver.archive.assemble import Assembler
from archiver.archive.mappings import KnownMappings
from archiver.archive.table_files import TableFile, ValueBounds
from archiver.storage.formats import FORMATS, SegmentFormats
from archiver.storage.objects import ObjectStore
from archiver.storage.segment import SegmentLayout, SegmentOrigin
from archiver.storage.spool_file import SpoolFile
from archiver.upkeep.verify.file import FileToRead, VerifiedFile, VerifyTarget, VerifyTask, verify_files
from archiver.upkeep.verify.file_claims import Identity
from archiver.upkeep.verify.findings import FaultKind
from archiver.upkeep.verify.tally import Tally, TallyCut
from archiver.wire.record_digest import RecordDigest
from schema_mapping.columns.fixed import (
    APPEND_TIMESTAMP_ID,
    BATCH_START_ID,
    HEADERS_ID,
    KAFKA_ID,
    RAW_TIMESTAMP_ID,
    VAL_ID,
)
from tests.support.storage.footer_flips import judged, some_flips, without_checksum
from tests.support.storage.parquet_pages import page_headers, with_other_count, without_page
from tests.support.storage.watched_format import watched_formats

ROWS = 50
ORIGIN = SegmentOrigin(cluster_id="c", topic="t", topic_id="", partition=0, start_offset=0, end_offset=ROWS)
UNUSED = (
    "ingest_timestamp",
    "batch_start",
    "batch_end",
    "producer_id",
    "producer_epoch",
    "base_sequence",
    "attributes",
)


@pytest.fixture
def rows(archive: Any) -> pa.RecordBatch:
    batch: pa.RecordBatch = archive.batch([archive.row(offset=n, value=b"value %d" % n) for n in range(ROWS)])
    return batch


@pytest.fixture
def local(archive: Any, rows: pa.RecordBatch, tmp_path: Path) -> Path:
    path = tmp_path / "ours.parquet"
    writer = FORMATS.written.start(SpoolFile.create(path), SegmentLayout.of_mapping(archive.rows, {}))
    writer.write(rows)
    writer.close(origin=ORIGIN, path="x", digest=digest_of(archive, rows))
    return path


def digest_of(archive: Any, rows: pa.RecordBatch) -> str:
    mappings = KnownMappings("t", _Mapping(archive))
    assembler = Assembler("here", rows.schema, mappings)
    return RecordDigest.of_seen(assembler.records(rows, assembler.kafka(rows))).text


class _Mapping:
    def __init__(self, archive: Any) -> None:
        self._archive = archive

    def row_mapping(self, version: int) -> Any:
        return self._archive.rows if version == 1 else None


def result_of(archive: Any, local: Path, formats: SegmentFormats = FORMATS) -> VerifiedFile:
    (result,) = results_of(archive, local, formats=formats)
    return result


def results_of(archive: Any, *paths: Path, formats: SegmentFormats = FORMATS) -> tuple[VerifiedFile, ...]:
    size = paths[0].stat().st_size
    files = [
        TableFile(
            path=path.as_uri(),
            format="parquet",
            rows=ROWS,
            size_bytes=path.stat().st_size if path.exists() else size,
            spec_id=0,
            partition_values=(),
            partitions=ValueBounds(0, 0),
            offsets=ValueBounds(0, ROWS - 1),
            latest=None,
        )
        for path in paths
    ]
    target = VerifyTarget(
        topic="t",
        identity=Identity(cluster_id="c", topic="t", topic_id="", table="n.t"),
        objects=ObjectStore.of({}),
        formats=formats,
        mappings={1: archive.mapping},
    )
    whole = TallyCut(partition=0, start_offset=0, end_offset=ROWS)
    selected = tuple(FileToRead(file=file, cuts=(whole,)) for file in files)
    return verify_files(VerifyTask(target=target, files=selected))


def decoded(archive: Any, local: Path) -> tuple[VerifiedFile, frozenset[int]]:
    """Return the result, and the ids of the columns that were decoded for it."""
    seen: list[frozenset[int] | None] = []
    result = result_of(archive, local, watched_formats(reads=seen.append))
    (columns,) = seen
    assert columns is not None
    return result, columns


def test_sound_file_is_proven_by_decoding_needed_columns(archive: Any, local: Path):
    result, columns = decoded(archive, local)
    assert (result.faults, result.rows, result.is_intact, result.is_read) == ((), ROWS, True, True)
    assert [piece.rows for piece in result.pieces] == [ROWS]
    assert (result.size_bytes, result.modified_ms) == (local.stat().st_size, local.stat().st_mtime_ns // 1_000_000)
    assert BATCH_START_ID not in columns


@pytest.mark.parametrize("name", UNUSED)
def test_bit_flip_is_found_in_each_unneeded_column(archive: Any, local: Path, name: str):
    chunk = _chunk(local, f"kafka.{name}")
    data = bytearray(local.read_bytes())
    data[chunk.data_page_offset + chunk.total_compressed_size - 1 - _dictionary_bytes(chunk)] ^= 1
    local.write_bytes(data)
    result = result_of(archive, local)
    assert [fault.kind for fault in result.faults] == [FaultKind.DAMAGED]
    assert "row group 0" in result.faults[0].message
    assert not result.is_read


def test_a_page_that_readers_leave_out_is_damage(archive: Any, local: Path):
    whole = local.read_bytes()
    pages = [header for header in page_headers(whole) if header.is_data and not header.column.startswith("headers")]
    results = []
    for page in pages:
        local.write_bytes(without_page(whole, page))
        result = result_of(archive, local)
        results.append((result.is_read, [fault.kind for fault in result.faults]))
    assert results == [(False, [FaultKind.DAMAGED])] * len(pages)


def test_another_number_of_values_in_a_page_header_is_damage(archive: Any, local: Path):
    whole = local.read_bytes()
    pages = [header for header in page_headers(whole) if header.is_data]
    results = []
    for number, page in enumerate(pages):
        local.write_bytes(with_other_count(whole, page, number % 6))
        result = result_of(archive, local)
        results.append((result.is_read, [fault.kind for fault in result.faults]))
    assert results == [(False, [FaultKind.DAMAGED])] * len(pages)


def test_damage_without_values_is_found_without_decoding(archive: Any, local: Path):
    with FORMATS.written.open(ObjectStore.of({}), local.as_uri()) as reader:
        (block,) = reader.blocks()
        nulls = reader.null_columns(block, frozenset((HEADERS_ID, VAL_ID, KAFKA_ID)))
    assert nulls >= {APPEND_TIMESTAMP_ID, RAW_TIMESTAMP_ID}
    _, columns = decoded(archive, local)
    assert not columns & nulls, "their pages are held against their checksums"
    whole = local.read_bytes()
    for path in ("kafka.append_timestamp", "kafka.raw_timestamp"):
        chunk = _chunk(local, path)
        first, size = chunk.dictionary_page_offset or chunk.data_page_offset, chunk.total_compressed_size
        for at in range(first, first + size):
            local.write_bytes(whole[:at] + bytes((whole[at] ^ 8,)) + whole[at + 1 :])
            assert judge(archive, local) in (0, 3), "found as by decoding it"
        assert judge(archive, local) == 3, "the last byte of the page"
        local.write_bytes(whole)


@pytest.mark.parametrize("has_checksum", [True, False], ids=["with a checksum", "without"])
def test_footer_bit_flip_is_found_as_by_decoding_all(archive: Any, local: Path, has_checksum: bool):
    if not has_checksum:
        local.write_bytes(without_checksum(local.read_bytes()))
    flips = some_flips(local.read_bytes())
    verdicts = [(bool(bits & 1), bool(bits & 2)) for bits in judged(local, flips, lambda: judge(archive, local))]
    assert [flip for flip, (before, after) in zip(flips, verdicts, strict=True) if before and not after] == []
    assert sum(before for before, _ in verdicts) > (len(flips) - 1 if has_checksum else len(flips) // 4)


def judge(archive: Any, local: Path) -> int:
    before = bool(result_of(archive, local, watched_formats(decodes_all=True)).faults)
    return before + 2 * bool(result_of(archive, local).faults)


def test_task_reads_two_files_at_once_and_reports_in_order(archive: Any, local: Path, tmp_path: Path):
    paths = [tmp_path / f"{name}.parquet" for name in ("whole", "cut", "gone", "again")]
    data = local.read_bytes()
    for path, content in zip(paths, (data, data[: len(data) // 2], None, data), strict=True):
        if content is not None:
            path.write_bytes(content)
    both = threading.Barrier(2)
    results = results_of(archive, *paths, formats=watched_formats(opens=lambda _: both.wait(timeout=30)))
    assert [result.path for result in results] == [path.as_uri() for path in paths]
    assert [result.is_intact for result in results] == [True, False, False, True]
    kinds = [[fault.kind for fault in result.faults] for result in results]
    assert kinds == [[], [FaultKind.DAMAGED], [FaultKind.MISSING_FILE], []]


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> list[Callable[[], object]]:
    """The steps before the next batches are counted."""
    steps: list[Callable[[], object]] = []
    count = Tally.add

    def add(self: Tally, records: pa.RecordBatch) -> RecordDigest:
        steps.pop(0)()
        return count(self, records)

    monkeypatch.setattr(Tally, "add", add)
    return steps


def test_batch_is_digested_while_the_next_is_decoded(archive: Any, local: Path, counting: list[Callable[[], object]]):
    both = threading.Barrier(2)
    counting += [lambda: both.wait(timeout=30), lambda: None]
    decoding: list[Callable[[], object]] = [lambda: None, lambda: both.wait(timeout=30)]
    formats = watched_formats(batch_rows=ROWS // 2, batches=lambda _: decoding.pop(0)())
    result = result_of(archive, local, formats)
    assert (result.faults, result.rows, result.is_intact) == ((), ROWS, True)
    assert (decoding, counting) == ([], [])


def test_file_is_closed_after_reading_if_counting_fails(
    archive: Any, local: Path, counting: list[Callable[[], object]]
):
    is_read_ahead, is_closed = threading.Event(), threading.Event()
    calls: list[str] = []

    def decode(_: pa.RecordBatch) -> None:
        if calls:
            is_read_ahead.set()
            is_closed.wait(timeout=0.05)
        calls.append("decoded")

    def close() -> None:
        calls.append("closed")
        is_closed.set()

    def fail() -> None:
        assert is_read_ahead.wait(timeout=30)
        raise ValueError("broken")

    counting.append(fail)
    result = result_of(archive, local, watched_formats(batch_rows=10, batches=decode, closes=close))
    assert not result.is_read
    assert "broken" in result.faults[0].message
    assert calls == ["decoded", "decoded", "closed"]


def test_a_file_without_checksums_is_decoded_whole(archive: Any, rows: pa.RecordBatch, tmp_path: Path):
    """Other engines write such files."""
    path = tmp_path / "theirs.parquet"
    pq.write_table(pa.Table.from_batches([rows]), path)
    result, columns = decoded(archive, path)
    assert (result.rows, result.is_read) == (ROWS, True)
    assert BATCH_START_ID in columns


def test_a_file_without_field_ids_beside_ours_is_decoded_whole(archive: Any, rows: pa.RecordBatch, tmp_path: Path):
    """A column without an id has to be read with all the rest."""
    path = tmp_path / "theirs.parquet"
    pq.write_table(pa.Table.from_batches([rows]).append_column("theirs", pa.array(["x"] * ROWS)), path)
    with FORMATS.written.open(ObjectStore.of({}), path.as_uri()) as reader:
        (block,) = reader.blocks()
        assert reader.to_decode(block, frozenset({BATCH_START_ID})) is None


def test_a_column_whose_name_looks_like_a_path_is_looked_at(archive: Any, rows: pa.RecordBatch, tmp_path: Path):
    path = tmp_path / "theirs.parquet"
    field = pa.field("val.total", pa.int64(), metadata={"PARQUET:field_id": "7000"})
    pq.write_table(pa.Table.from_batches([rows]).append_column(field, pa.array(range(ROWS))), path)
    result, columns = decoded(archive, path)
    assert result.is_read
    assert 7000 in columns


def test_a_column_with_a_key_of_its_own_is_a_fault_of_the_file(archive: Any, rows: pa.RecordBatch, tmp_path: Path):
    """It can't be read, and pyarrow must not open it."""
    path = tmp_path / "theirs.parquet"
    table = pa.Table.from_batches([rows]).append_column("secret", pa.array(["x"] * ROWS))
    keys = encryption.EncryptionConfiguration(
        footer_key="footer", column_keys={"own": ["secret"]}, plaintext_footer=True, double_wrapping=False
    )
    factory = encryption.CryptoFactory(lambda _: _Keys())
    options = factory.file_encryption_properties(encryption.KmsConnectionConfig(), keys)
    with pq.ParquetWriter(path, table.schema, encryption_properties=options) as writer:
        writer.write_table(table)
    (fault,) = result_of(archive, path).faults
    assert fault.kind == FaultKind.DAMAGED
    assert "decrypt" in fault.message


class _Keys(encryption.KmsClient):
    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> bytes:
        return base64.b64encode(key_bytes)

    def unwrap_key(self, wrapped_key: bytes, master_key_identifier: str) -> bytes:
        return base64.b64decode(wrapped_key)


def test_a_stream_that_fails_leaves_it_to_the_decoding(archive: Any, local: Path):
    with FORMATS.written.open(ObjectStore.of({}), local.as_uri()) as reader:
        (block,) = reader.blocks()
        assert reader.to_decode(block, frozenset({BATCH_START_ID})) is not None
        reader.close()
        assert reader.to_decode(block, frozenset({BATCH_START_ID})) is None


def _chunk(local: Path, path: str) -> pq.ColumnChunkMetaData:
    group = pq.read_metadata(local).row_group(0)
    return next(item for n in range(group.num_columns) if (item := group.column(n)).path_in_schema == path)


def _dictionary_bytes(chunk: pq.ColumnChunkMetaData) -> int:
    return chunk.data_page_offset - chunk.dictionary_page_offset if chunk.dictionary_page_offset else 0
