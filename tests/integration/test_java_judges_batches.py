"""Kafka's Java client on written and read batches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from archiver.codecs import Codec
from archiver.wire import DecodedBatches, decode_batches, encode_batches
from tests.support.kafka.compressed_streams import PLAIN, WITH_TRAILING_BYTES
from tests.support.kafka.java_records import SOURCE, JavaView, dumped, java, read_by_java, seen_by_us
from tests.support.kafka.record_batches import Record, build, compressed, raw_batch, raw_record

pytestmark = pytest.mark.integration

FORMATS = [(0, "none gzip snappy lz4"), (1, "none gzip snappy lz4"), (2, "none gzip snappy lz4 zstd")]
VARIANTS = {0: ("", "-compacted"), 1: ("", "-append", "-stamped", "-compacted")}
VARIANTS[2] = (*VARIANTS[1], "-idempotent", "-transactional")
FILES = [
    *(
        f"v{magic}-{codec}{variant}.bin"
        for magic, all_ in FORMATS
        for codec in all_.split()
        for variant in VARIANTS[magic]
    ),
    "mixed.bin",
]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("java")
    java(str(SOURCE), "write", str(folder))
    assert sorted(path.name for path in folder.iterdir()) == sorted(FILES)
    return folder


@pytest.fixture(scope="module")
def views(written: Path) -> dict[str, JavaView]:
    return read_by_java(*sorted(written.iterdir()))


def decode(data: bytes) -> DecodedBatches:
    decoded = decode_batches(data, start_offset=0, end_offset=1 << 62)
    decoded.records.validate(full=True)
    assert decoded.consumed == len(data)
    return decoded


def without_control(view: JavaView) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    markers = [batch for batch in view.batches if batch["control"]]
    hidden = {marker["base_offset"] for marker in markers}
    return (
        [batch for batch in view.batches if not batch["control"]],
        [record for record in view.records if record["offset"] not in hidden],
    )


@pytest.mark.parametrize("name", FILES)
def test_what_java_wrote_is_read_as_java_reads_it(name: str, written: Path, views: dict[str, JavaView]) -> None:
    batches, records = without_control(views[name])
    decoded = decode((written / name).read_bytes())
    assert seen_by_us(decoded.records) == records
    assert decoded.batches.base_offset.tolist() == [batch["base_offset"] for batch in batches]
    assert decoded.batches.last_offset.tolist() == [batch["last_offset"] for batch in batches]
    assert decoded.batches.bytes.tolist() == [batch["size"] for batch in batches]
    first_rows = pa.array(decoded.batches.first_row)
    for name_of_ours in ("leader_epoch", "producer_id", "producer_epoch", "base_sequence"):
        ours = decoded.records.column(name_of_ours).take(first_rows).to_pylist()
        assert ours == [batch[name_of_ours] for batch in batches], name_of_ours


@pytest.mark.parametrize("name", [name for name in FILES if name.startswith("v2-none") and "compacted" not in name])
def test_uncompressed_batches_of_java_come_back_byte_for_byte(name: str, written: Path) -> None:
    data = (written / name).read_bytes()
    decoded = decode(data)
    encoded = encode_batches(decoded.records)
    assert len(encoded) == len(decoded.batches) > 0
    assert all(bytes(encoded.batch(index)) in data for index in range(len(encoded)))
    assert len(encoded.data) == len(data) or "transactional" in name


@pytest.fixture(scope="module")
def reencoded(written: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, JavaView]:
    folder = tmp_path_factory.mktemp("ours")
    for name in FILES:
        data = encode_batches(decode((written / name).read_bytes()).records).data
        (folder / name).write_bytes(data)
    return read_by_java(*sorted(folder.iterdir()))


@pytest.mark.parametrize("name", FILES)
def test_java_reads_the_same_in_what_we_encode(
    name: str, views: dict[str, JavaView], reencoded: dict[str, JavaView]
) -> None:
    batches, records = without_control(views[name])
    # format v2 has no other type of time
    assert list(reencoded[name].records) == [
        record | {"timestamp_type": max(record["timestamp_type"], 0)} for record in records
    ]
    for ours, theirs in zip(reencoded[name].batches, batches, strict=True):
        compared = theirs | {"magic": 2, "timestamp_type": max(theirs["timestamp_type"], 0), "size": ours["size"]}
        assert ours == compared


def test_bytes_after_a_compressed_stream_are_skipped_as_in_java(tmp_path: Path) -> None:
    data = {f"{index}.bin": compressed(PLAIN, *framing) for index, framing in enumerate(WITH_TRAILING_BYTES.values())}
    for name, batch in data.items():
        (tmp_path / name).write_bytes(batch)
    for name, view in read_by_java(*tmp_path.iterdir()).items():
        assert seen_by_us(decode(data[name]).records) == list(view.records) != []


EXTREMES = [
    raw_batch(
        [
            raw_record(headers=[(b"\xff", b"\xff"), (b"", None), (b"", b"")] * 2000),
            raw_record(delta=1, key=None, value=None, time_delta=-(1 << 62)),
            raw_record(delta=2, key=b"", value=b"", time_delta=1 << 61),
            raw_record(delta=9, value=b"v" * 5_000_000),
        ],
        base_offset=1 << 60,
        last_delta=(1 << 31) - 1,
    ),
    build([Record(), Record(value=None)], base_offset=(1 << 60) + (1 << 31), producer_id=7, producer_epoch=2),
]


def test_java_reads_extremes_in_every_codec(tmp_path: Path) -> None:
    records = decode(b"".join(EXTREMES)).records
    for codec in Codec:
        (tmp_path / codec.name).write_bytes(encode_batches(records, compression=codec).data)
    views = read_by_java(*sorted(tmp_path.iterdir()))
    assert len(views) == len(Codec)
    for name, view in views.items():
        assert list(view.records) == seen_by_us(records)
        assert [batch["codec"] for batch in view.batches] == [int(Codec[name])] * 2
        assert [batch["last_offset"] for batch in view.batches] == [
            (1 << 60) + (1 << 31) - 1,
            (1 << 60) + (1 << 31) + 1,
        ]


def test_dump_log_segments_prints_the_same(tmp_path: Path) -> None:
    made = [
        build(
            [Record(key=b"k%d" % at, value=b"value-%d" % at, headers=(("a", b"1"), ("b", None))) for at in range(50)],
            base_offset=100 * int(codec),
            producer_id=5,
            producer_epoch=0,
            base_sequence=100 * int(codec),
            leader_epoch=2,
            deltas=[2 * at for at in range(50)],
        )
        for codec in Codec
    ]
    records = decode(b"".join(made)).records
    segment = tmp_path / f"{0:020}.log"
    segment.write_bytes(
        b"".join(
            bytes(encode_batches(decode(batch).records, compression=codec).data)
            for batch, codec in zip(made, Codec, strict=True)
        )
    )
    expected = [
        (row["offset"], row["timestamp"], row["offset"], ["a", "b"], row["key"].decode(), row["value"].decode())
        for row in records.to_pylist()
    ]
    assert dumped(segment) == expected
