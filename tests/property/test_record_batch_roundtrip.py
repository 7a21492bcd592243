"""Record batches of two other libraries."""

from __future__ import annotations

import pyarrow as pa
from aiokafka.record.default_records import DefaultRecordBatch
from hypothesis import given
from hypothesis import strategies as st

from archiver.codecs import Codec
from archiver.wire import decode_batches, encode_batches
from tests.support.kafka.record_batches import BUILDER_CODECS, RECORDS, Record, build, headers_of

INT64 = st.integers(-(1 << 63), (1 << 63) - 1)


@given(st.lists(RECORDS, min_size=1, max_size=30), st.sampled_from(BUILDER_CODECS), st.integers(0, 1 << 60), st.data())
def test_columns_equal_what_was_written_and_what_others_read(
    records: list[Record], writer: tuple[str, str], base_offset: int, data: st.DataObject
) -> None:
    deltas = sorted(data.draw(st.sets(st.integers(0, 200), min_size=len(records), max_size=len(records))))
    builder, codec = writer
    latest = max([-1, *(record.timestamp for record in records)])  # as the broker sets it
    batch = build(records, base_offset=base_offset, builder=builder, codec=codec, deltas=deltas, max_timestamp=latest)
    decoded = decode_batches(batch, start_offset=base_offset, end_offset=base_offset + 1)
    decoded.records.validate(full=True)
    columns = [decoded.records.column(name).to_pylist() for name in ("offset", "timestamp", "key", "value")]
    ours = list(zip(*columns, headers_of(decoded), strict=True))
    written = [
        (
            base_offset + delta,
            record.timestamp,
            record.key,
            record.value,
            [(name.encode(), text) for name, text in record.headers],
        )
        for delta, record in zip(deltas, records, strict=True)
    ]
    read = [
        (
            record.offset,
            record.timestamp,
            record.key,
            record.value,
            [(name.encode(), text) for name, text in record.headers],
        )
        for record in DefaultRecordBatch(batch)
    ]
    assert ours == written == read
    encoded = encode_batches(decoded.records)
    assert bytes(encoded.data) == batch or codec != "none"
    again = DefaultRecordBatch(bytes(encoded.data))
    assert again.validate_crc()
    assert [(record.offset, record.key) for record in again] == [
        (record.offset, record.key) for record in DefaultRecordBatch(batch)
    ]
    assert decode_batches(encoded.data, start_offset=0, end_offset=1 << 62).records == decoded.records


@given(
    st.lists(st.tuples(st.lists(RECORDS, min_size=1, max_size=8), st.integers(0, 50)), min_size=1, max_size=6),
    st.sampled_from(Codec),
    st.data(),
)
def test_columns_with_rows_missing_come_back(
    batches: list[tuple[list[Record], int]], codec: Codec, data: st.DataObject
) -> None:
    parts, at = [], 0
    for records, gap in batches:
        parts.append(build(records, base_offset=at + gap))
        at += gap + len(records)
    records = decode_batches(b"".join(parts), start_offset=0, end_offset=1 << 62).records
    keep = data.draw(st.lists(st.booleans(), min_size=records.num_rows, max_size=records.num_rows))
    kept = records.filter(pa.array(keep, pa.bool_()))
    again = decode_batches(encode_batches(kept, compression=codec).data, start_offset=0, end_offset=1 << 62).records
    assert again.drop_columns(["attributes"]) == kept.drop_columns(["attributes"])
    assert set(again.column("attributes").to_pylist()) <= {int(codec)}
