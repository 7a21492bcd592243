"""Records become batches within broker limits."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from archiver.archive.records import RECORDS
from archiver.codecs import Codec
from archiver.kafka.transactional_writer import ProducerIdentity
from archiver.republish.batches import ProducedRecords, split_by_size
from archiver.wire import decode_batches
from archiver.wire.attributes import TRANSACTIONAL
from archiver.wire.record_sizes import sizes_of

IDENTITY = ProducerIdentity(producer_id=77, epoch=3, base_sequence=12)
_bytes = st.none() | st.binary(max_size=30)
_header = st.fixed_dictionaries({"key": st.binary(max_size=4), "value": _bytes})
_record = st.fixed_dictionaries(
    {
        "timestamp": st.sampled_from([-1, 0, 1, -(2**60), 2**60, 1_700_000_000_000]),
        "key": _bytes,
        "value": _bytes,
        "headers": st.lists(_header, max_size=3),
    }
)


def batch(rows: list[dict[str, Any]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(
        [{"partition": 0, "offset": 5 + 3 * number, "timestamp_type": 1, **row} for number, row in enumerate(rows)],
        RECORDS,
    )


@given(st.lists(_record, min_size=1, max_size=20), st.sampled_from(Codec), st.integers(0, 3))
def test_a_batch_has_what_the_records_had(rows: list[dict[str, Any]], codec: Codec, skipped: int) -> None:
    records = batch(rows).slice(min(skipped, len(rows) - 1))
    produced = ProducedRecords(records, codec)
    decoded = decode_batches(bytes(produced.encode(IDENTITY)), start_offset=0, end_offset=2**62).records
    read = decoded.to_pylist()
    assert [row["offset"] for row in read] == [*range(produced.rows)]
    for column in ("timestamp", "key", "value", "headers"):
        assert [row[column] for row in read] == records.column(column).to_pylist()
    assert {row["timestamp_type"] for row in read} == {0}
    assert {(row["producer_id"], row["producer_epoch"], row["base_sequence"]) for row in read} == {(77, 3, 12)}
    assert {row["attributes"] for row in read} == {TRANSACTIONAL | codec}


@given(st.lists(_record, min_size=1, max_size=40), st.integers(1, 400), st.integers(1, 9))
def test_pieces_are_within_the_limits_and_lose_nothing(rows: list[dict[str, Any]], size: int, count: int) -> None:
    records = batch(rows)
    pieces = [*split_by_size(records, most_bytes=size, most_rows=count)]
    assert pa.Table.from_batches(pieces).to_pylist() == records.to_pylist()
    for piece in pieces:
        assert 1 <= piece.num_rows <= count
        assert piece.num_rows == 1 or sizes_of(piece).sum() <= size


@given(st.lists(_record, min_size=1, max_size=20))
def test_sizes_are_never_too_small(rows: list[dict[str, Any]]) -> None:
    records = batch(rows)
    encoded = len(ProducedRecords(records, Codec.NONE).encode(IDENTITY))
    assert encoded <= 61 + sizes_of(records).sum()
