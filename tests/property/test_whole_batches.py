"""Any log returns with the same batches."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from aiokafka.record.memory_records import MemoryRecords
from hypothesis import given, settings
from hypothesis import strategies as st

from archiver.archive.batches import ArchivedBatches, BatchCursor, BatchOptions
from archiver.archive.batches.borders import BatchSizes
from archiver.codecs import Codec
from archiver.wire import AbortedTransaction
from tests.support.archive.archived_batches import KnownRows, archived, data_of, fetches, header_of, records_in, split
from tests.support.kafka.message_sets import message, wrapper
from tests.support.kafka.record_batches import CODECS, Record, build, marker

TIMES = st.integers(-1, 1 << 42) | st.sampled_from([-(1 << 62), 253_402_300_800_000])
OCTETS = st.none() | st.binary(max_size=30)
RECORDS = st.builds(
    Record,
    timestamp=TIMES,
    key=OCTETS,
    value=OCTETS,
    headers=st.lists(st.tuples(st.text(max_size=3), OCTETS), max_size=2).map(tuple),
)
LOG_APPEND = 0b1000
TRANSACTIONAL = 0b10000


@dataclass(frozen=True, slots=True)
class Log:
    """A log's bytes up to `end`, its visible batches, and aborted ones."""

    data: bytes
    end: int
    kept: tuple[bytes, ...]
    aborted: tuple[AbortedTransaction, ...]


@st.composite
def logs(draw: st.DrawFn) -> Log:
    at, parts, kept, aborted = 0, [], [], []
    for number in range(draw(st.integers(1, 6))):
        at += draw(st.integers(0, 4))
        records = draw(st.lists(RECORDS, min_size=1, max_size=5))
        deltas = sorted(draw(st.sets(st.integers(0, 9), min_size=len(records), max_size=len(records))))
        last = deltas[-1] + draw(st.integers(0, 3))
        appended, transactional = draw(st.booleans()), draw(st.booleans())
        has_producer = transactional or draw(st.booleans())
        producer = {"producer_id": number, "producer_epoch": 3, "base_sequence": draw(st.sampled_from([0, 2**31 - 2]))}
        latest = max([-1, *(record.timestamp for record in records)])
        batch = build(
            records,
            base_offset=at,
            deltas=deltas,
            last_delta=last,
            codec=draw(st.sampled_from(list(CODECS))),
            builder="aiokafka",
            leader_epoch=draw(st.integers(-1, 5)),
            transactional=transactional,
            max_timestamp=draw(st.integers(0, 1 << 42)) if appended else latest,
            attributes=LOG_APPEND if appended else 0,
            **(producer if has_producer else {}),
        )
        parts.append(batch)
        at += last + 1
        if not transactional:
            kept.append(batch)
            continue
        commits = draw(st.booleans())
        if commits:
            kept.append(batch)
        else:
            aborted.append(AbortedTransaction(producer_id=number, first_offset=header_of(batch)["base_offset"]))
        parts.append(marker(base_offset=at, producer_id=number, commit=commits))
        at += 1
    return Log(b"".join(parts), at, tuple(kept), tuple(aborted))


def seen_by_aiokafka(data: bytes) -> list[tuple[Any, ...]]:
    reader = MemoryRecords(data)
    result: list[tuple[Any, ...]] = []
    while (batch := reader.next_batch()) is not None:
        assert batch.validate_crc()
        if not batch.is_control_batch:
            result += [
                (record.offset, record.timestamp, record.timestamp_type, record.key, record.value, list(record.headers))
                for record in batch
            ]
    return result


def compared(batch: bytes) -> dict[str, int]:
    return {name: value for name, value in header_of(batch).items() if name not in ("length", "crc")}


def assert_same(ours: bytes, theirs: bytes) -> None:
    assert compared(ours) == compared(theirs)
    assert seen_by_aiokafka(ours) == seen_by_aiokafka(theirs)
    assert ours == theirs or header_of(theirs)["attributes"] & 7


@settings(max_examples=15)
@given(logs(), st.integers(1, 3), st.integers(1, 700), st.sampled_from([0, 8]), st.none() | st.integers(1, 7))
def test_batches_come_back_with_borders_and_headers(
    log: Log, files: int, max_bytes: int, open_streams: int, rewritten: int | None
):
    with tempfile.TemporaryDirectory() as folder:
        lake = archived(Path(folder), log.data, end=log.end, aborted=log.aborted, files=files)
        if rewritten and lake.files():
            lake.rewrite(row_group_size=rewritten)
        archive = lake.archive(registry=lambda *_: KnownRows())
        with ArchivedBatches(archive, BatchOptions(open_streams=open_streams)) as source:
            result = []
            for fetch in fetches(source, max_bytes):
                batches = split(data_of(fetch))
                assert fetch.size <= max_bytes or len(batches) == 1
                result += batches
            assert len(result) == len(log.kept)
            for ours, theirs in zip(result, log.kept, strict=True):
                assert_same(ours, theirs)


@settings(max_examples=5)
@given(logs(), st.sampled_from(Codec), st.none() | st.integers(1, 4))
def test_every_offset_can_be_gone_on_from(log: Log, codec: Codec, rewritten: int | None):
    with tempfile.TemporaryDirectory() as folder:
        lake = archived(Path(folder), log.data, end=log.end, aborted=log.aborted, files=2)
        if rewritten and lake.files():
            lake.rewrite(row_group_size=rewritten)
        archive = lake.archive(registry=lambda *_: KnownRows())
        everything = seen_by_aiokafka(b"".join(log.kept))
        options = BatchOptions(open_streams=2, spans_gaps=True)
        with ArchivedBatches(archive, options) as source:
            for start in range(log.end + 1):
                left = [record for record in everything if record[0] >= start]
                first = source.fetch(BatchCursor(partition=0, offset=start), 1, compression=codec)
                assert seen_by_aiokafka(data_of(first)) == [value for value in left if value[0] < first.cursor.offset]
                whole = source.fetch(BatchCursor(partition=0, offset=start), 1 << 20, compression=codec)
                assert seen_by_aiokafka(data_of(whole)) == left
                assert whole.cursor.offset == log.end
                batches = [header_of(value) for value in split(data_of(whole))]
                assert bool(batches) == (start < log.end), "a client must get over offsets without records"
                assert all(batch["attributes"] & 7 in (codec, 0) for batch in batches)
                ends = [batch["base_offset"] + batch["last_delta"] + 1 for batch in batches]
                assert ends[:-1] == [batch["base_offset"] for batch in batches[1:]], "no gap between batches"


@settings(max_examples=12)
@given(log=logs(), unknown=st.integers(1, 200), rows=st.integers(1, 5), spans_gaps=st.booleans())
def test_rows_without_borders_become_batches_too(log: Log, unknown: int, rows: int, *, spans_gaps: bool):
    lost = ("batch_start", "batch_end", "producer_id", "producer_epoch", "base_sequence", "attributes")

    def without(table: pa.Table) -> pa.Table:
        kafka = table["kafka"].combine_chunks()
        kept = [field for field in kafka.type if field.name not in lost]
        columns = [kafka.field(field.name) for field in kept]
        index = table.schema.get_field_index("kafka")
        field = pa.field("kafka", pa.struct(kept), metadata=table.schema.field(index).metadata)
        return table.set_column(index, field, pa.StructArray.from_arrays(columns, fields=kept))

    with tempfile.TemporaryDirectory() as folder:
        lake = archived(Path(folder), log.data, end=log.end, aborted=log.aborted)
        if lake.files():
            lake.rewrite(without, row_group_size=rows)
        options = BatchOptions(sizes=BatchSizes(unknown=unknown), spans_gaps=spans_gaps)
        with ArchivedBatches(lake.archive(registry=lambda *_: KnownRows()), options) as source:
            data = b"".join(data_of(fetch) for fetch in fetches(source, 300))
        assert seen_by_aiokafka(data) == seen_by_aiokafka(b"".join(log.kept))
        last = -1
        for header in map(header_of, split(data)):
            assert header["base_offset"] > last
            last = header["base_offset"] + header["last_delta"]
            assert header["producer_id"] == header["producer_epoch"] == header["base_sequence"] == -1
        assert last < log.end


OLD_SETS = st.tuples(
    st.sampled_from([0, 1]),
    st.sampled_from(["none", "gzip", "snappy", "lz4"]),
    st.lists(OCTETS, min_size=1, max_size=4),
)


@settings(max_examples=10)
@given(st.lists(OLD_SETS, min_size=1, max_size=4), st.integers(1, 300))
def test_old_formats_come_as_v2(sets: list[tuple[int, str, list[bytes | None]]], max_bytes: int):
    parts, at, number = [], 0, 0
    for magic, codec, values in sets:
        is_relative = bool(magic) and codec != "none"
        time = 1_700_000_000_000 if magic else -1
        inner = [
            message(position if is_relative else at + position, b"k", value, magic=magic, timestamp=time)
            for position, value in enumerate(values)
        ]
        at += len(values)
        number += len(inner) if codec == "none" else 1
        parts += inner if codec == "none" else [wrapper(at - 1, inner, codec, magic=magic, timestamp=time)]
    log = b"".join(parts)
    with tempfile.TemporaryDirectory() as folder:
        source = ArchivedBatches(archived(Path(folder), log, end=at).archive())
        data = b"".join(data_of(fetch) for fetch in fetches(source, max_bytes))
    headers = list(map(header_of, split(data)))
    assert {header["magic"] for header in headers} == {2}
    assert len(headers) == number
    ours, theirs = records_in(data), records_in(log)
    for name in ours.schema.names:
        if name == "timestamp_type":
            assert not any(ours[name].to_pylist())
        else:
            assert ours[name] == theirs[name], name
    assert [record[3:5] for record in seen_by_aiokafka(data)] == [(b"k", value) for *_, item in sets for value in item]
