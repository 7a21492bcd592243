"""Fuzz target: record batches, good or damaged, against aiokafka's reader."""

from __future__ import annotations

from collections.abc import Iterator

import cramjam
from aiokafka.errors import CorruptRecordException
from aiokafka.record.default_records import _DefaultRecordBatchPy as TheirBatch

from archiver.codecs import Codec
from archiver.errors import CorruptBatch
from archiver.wire import DecodedBatches, DecodeLimits, decode_batches, encode_batches
from archiver.wire.record_digest import RecordDigest
from tests.fuzz.choices import FuzzedChoices
from tests.fuzz.exact import exact_buffer
from tests.fuzz.plain_records import are_plain
from tests.support.kafka.record_batches import CODECS, Record, build, headers_of, patched, raw_batch, raw_record
from tests.support.kafka.record_digest import SeenRecord, digest
from tests.support.schemas.random_choices import SeededChoices

LIMITS = DecodeLimits(chunk=1 << 20, batch=1 << 20)
COMPRESS = (
    bytes,
    cramjam.gzip.compress,
    cramjam.snappy.compress_raw,
    cramjam.lz4.compress,
    cramjam.zstd.compress,
)
MAGIC = 2
END = 1 << 62
NAMES = ("offset", "timestamp", "key", "value")


def check(octets: bytes) -> None:
    choices = FuzzedChoices(octets)
    make = (_anything, _section, _records, _spoilt)[choices.integer(0, 3)]
    fetched = make(choices)
    start = choices.integer(0, 3)
    try:
        read = decode_batches(
            exact_buffer(fetched), start_offset=start, end_offset=END, cut_head=start == 1, limits=LIMITS
        )
    except CorruptBatch:
        return
    read.records.validate(full=True)
    assert read.consumed <= len(fetched)
    _check_records(fetched, read)
    _check_again(read)


def _anything(choices: FuzzedChoices) -> bytes:
    return choices.rest()


def _section(choices: FuzzedChoices) -> bytes:
    # A batch with a right header around records of any bytes.
    codec = choices.integer(0, 7)
    last_delta, count = choices.integer(0, 20), choices.integer(0, 20)
    as_it_is = choices.integer(0, 1) or codec >= len(COMPRESS)
    section = choices.rest()
    payload = section if as_it_is else bytes(COMPRESS[codec](section))
    return raw_batch([payload], last_delta=last_delta, count=count, attributes=codec)


def _records(choices: FuzzedChoices) -> bytes:
    # Records of right and of wrong lengths.
    records = [
        raw_record(
            delta=index + choices.integer(0, 1),
            time_delta=choices.integer(-300, 300),
            key=_text(choices),
            value=_text(choices),
            headers=tuple((_text(choices) or b"", _text(choices)) for _ in range(choices.integer(0, 2))),
        )
        for index in range(choices.integer(0, 5))
    ]
    section = bytearray(b"".join(records))
    for _ in range(choices.integer(0, 2)):
        if section:
            section[choices.integer(0, 1 << 16) % len(section)] = choices.integer(0, 255)
    last_delta = max(0, len(records) - 1 + choices.integer(0, 1))
    return raw_batch([bytes(section)], last_delta=last_delta, count=len(records), base_offset=choices.integer(0, 5))


def _spoilt(choices: FuzzedChoices) -> bytes:
    # Two batches as producers write them, with a few bytes changed, and the checksum of the first right again.
    codec = tuple(CODECS)[choices.integer(0, 4)]
    records = [
        Record(timestamp=choices.integer(0, 1 << 40), value=_text(choices)) for _ in range(choices.integer(1, 4))
    ]
    first = bytearray(build(records, codec=codec, builder="aiokafka"))
    for _ in range(choices.integer(0, 3)):
        first[choices.integer(0, 1 << 16) % len(first)] = choices.integer(0, 255)
    whole = patched(bytes(first)) if choices.integer(0, 3) else bytes(first)
    second = build(records, base_offset=9, codec=codec, builder="aiokafka")
    return whole + second[: len(second) - choices.integer(0, 9)]


def _text(choices: FuzzedChoices) -> bytes | None:
    length = choices.integer(-1, 12)
    return None if length < 0 else choices.data(length)


def _check_records(fetched: bytes, read: DecodedBatches) -> None:
    is_append = read.records.column("timestamp_type").to_pylist()
    columns = {name: read.records.column(name).to_pylist() for name in (*NAMES, "append_timestamp")}
    times = [
        append if late else time
        for late, append, time in zip(is_append, columns["append_timestamp"], columns["timestamp"], strict=True)
    ]
    ours = list(zip(columns["offset"], times, columns["key"], columns["value"], headers_of(read), strict=True))
    theirs = _theirs(fetched[: read.consumed], set(read.batches.base_offset.tolist()))
    if theirs is not None:
        assert ours == [record for record in theirs if record[0] >= read.start_offset]
    seen = [
        SeenRecord(3, offset, late, time, key, value, pairs)
        for late, (offset, time, key, value, pairs) in zip(is_append, ours, strict=True)
    ]
    assert RecordDigest.of_fetched(read.records, partition=3).text == digest(seen)


def _check_again(read: DecodedBatches) -> None:
    encoded = exact_buffer(bytes(encode_batches(read.records, compression=Codec.NONE).data))
    again = decode_batches(encoded, start_offset=0, end_offset=END, cut_head=True)
    rewritten = ["attributes", "timestamp_type"]  # the codec; format v0 has no type of time
    assert again.records.drop_columns(rewritten) == read.records.drop_columns(rewritten)


def _theirs(fetched: bytes, wanted: set[int]) -> list[tuple[object, ...]] | None:
    # What aiokafka reads of the batches that gave rows; None if it reads them otherwise than Java.
    result: list[tuple[object, ...]] = []
    at = 0
    while at < len(fetched):
        if fetched[at + 16] != MAGIC:
            return None
        size = 12 + int.from_bytes(fetched[at + 8 : at + 12], "big")
        batch = TheirBatch(fetched[at : at + size])
        at += size
        if batch.is_control_batch or batch.base_offset not in wanted:
            continue
        try:
            batch._maybe_uncompress()
        except cramjam.DecompressionError:
            # It wants version 1 of the frames that Java writes; we read what is in them.
            return None
        if not are_plain(bytes(batch._buffer)[batch._pos :], batch._num_records, batch.first_timestamp):
            return None
        try:
            records = list(batch)
        except CorruptRecordException as error:
            if isinstance(error.__context__, UnicodeDecodeError):
                return None
            raise
        offsets = [record.offset for record in records]
        if offsets != sorted(set(offsets)) or not batch.base_offset <= offsets[0] <= offsets[-1] < batch.next_offset:
            offsets = [batch.base_offset + index for index in range(len(records))]
        for offset, row in zip(offsets, records, strict=True):
            pairs = [(name.encode(), text) for name, text in row.headers]
            result.append((offset, row.timestamp, row.key, row.value, pairs))
    return result


def seeds() -> Iterator[bytes]:
    for codec in CODECS:
        records = [Record(value=b"v" * size, headers=(("h", b"x"), ("n", None))) for size in (0, 3, 200)]
        yield b"\0" + build(records, codec=codec, builder="aiokafka") + b"\0" * 8
    for seed in range(40):
        yield bytes([seed % 4]) + SeededChoices(seed).data(10 * seed)
