"""Record columns back to record batches of format v2, as a consumer would have got them.

A batch keeps its borders, producer fields, timestamps, flags and codec. Where the rows are all there and were never
compressed, its bytes are those that the producer and the broker wrote, checksum included.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from google_crc32c import value as crc32c

from archiver.errors import UnencodableBatch
from archiver.wire import attributes
from archiver.wire.batch_header import CHECKSUM_START, HEADER, HEADER_BYTES
from archiver.wire.batch_index import LOG_APPEND
from archiver.wire.codec import Codec
from archiver.wire.columns import NO_TIMESTAMP, RECORDS, Int64Array
from archiver.wire.deflate import deflate
from archiver.wire.record_encode import BatchWriter

_LENGTH_AT: Final = 8
_LENGTH_END: Final = 12
_CHECKSUM_AT: Final = 17
_LENGTH: Final = struct.Struct(">i")
_CHECKSUM: Final = struct.Struct(">I")
_BATCH_FIELDS: Final = ("leader_epoch", "producer_id", "producer_epoch", "base_sequence", "attributes")
_REWRITTEN: Final = attributes.CODEC | attributes.LOG_APPEND_TIME | attributes.DELETE_HORIZON
_MAX_DELTA: Final = (1 << 31) - 1

Compression = Literal["original"] | Codec


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedBatches:
    """Batches one after the other in `data`, as Fetch responses and log segments hold them.

    `base_offset` and `last_offset` have an element for each; it lies from `position[i]` up to `position[i + 1]`.
    """

    data: memoryview
    base_offset: Int64Array
    last_offset: Int64Array
    position: Int64Array

    def __len__(self) -> int:
        return len(self.base_offset)

    def batch(self, index: int) -> memoryview:
        """The bytes of one batch."""
        return self.data[int(self.position[index]) : int(self.position[index + 1])]


def encode_batches(records: pa.RecordBatch, *, compression: Compression = "original") -> EncodedBatches:
    """Encode whole batches; `records` has the columns of `RECORDS`, in the order that decoding gives.

    Rows with one `batch_start` are one batch; rows that are missing leave gaps in its offsets, as compaction does. Its
    first timestamp is that of its first row. `compression` is each batch's own codec, or one for all. Records of format
    v0, which have no type of time, become records with create time and none set (-1).

    Raises `UnencodableBatch` with the base offset where rows make no valid batch or one above 2 GiB; ValueError where
    the columns are not those of records.
    """
    if records.schema.types != RECORDS.types or records.schema.names != RECORDS.names:
        raise ValueError(f"these are not the columns of records: {records.schema}")
    starts = _column(records, "batch_start")
    first_rows = np.flatnonzero(np.diff(starts, prepend=starts[:1] - 1)) if len(starts) else np.empty(0, np.int64)
    bounds = np.append(first_rows, records.num_rows)
    headers = _headers(records, first_rows, bounds, compression)
    plain = BatchWriter(records, headers, bounds).write()
    codecs = headers["attributes"] & attributes.CODEC
    if codecs.any():
        data, position = _compressed(plain, headers, codecs)
    else:
        data, position = plain, np.append(headers["position"], len(plain))
    _fill_checksums(data, position)
    return EncodedBatches(
        data=data.data,
        base_offset=headers["base_offset"].copy(),
        last_offset=headers["last_offset"].copy(),
        position=position,
    )


def _column(records: pa.RecordBatch, name: str) -> npt.NDArray[Any]:
    column: npt.NDArray[Any] = records.column(name).to_numpy(zero_copy_only=False)
    return column


def _headers(
    records: pa.RecordBatch, first_rows: Int64Array, bounds: Int64Array, compression: Compression
) -> npt.NDArray[Any]:
    """A header for each batch, `size` and `position` left out."""
    headers = np.zeros(len(first_rows), HEADER)
    headers["magic"] = 2
    headers["count"] = np.diff(bounds)
    headers["base_offset"] = _column(records, "batch_start")[first_rows]
    headers["last_offset"] = _column(records, "batch_end")[first_rows]
    for name in _BATCH_FIELDS:
        headers[name] = _column(records, name)[first_rows]
    _check_borders(headers)
    timestamps = _column(records, "timestamp")
    headers["base_timestamp"] = timestamps[first_rows]
    appended = _column(records, "timestamp_type")[first_rows] == LOG_APPEND
    if len(headers):
        latest = np.maximum(np.maximum.reduceat(timestamps, first_rows), NO_TIMESTAMP)
        append_time = records.column("append_timestamp").fill_null(NO_TIMESTAMP).to_numpy()[first_rows]
        headers["max_timestamp"] = np.where(appended, append_time, latest)
    headers["attributes"] = _attributes(headers["attributes"], appended, compression)
    return headers


def _attributes(
    original: npt.NDArray[np.int32], appended: npt.NDArray[np.bool_], compression: Compression
) -> npt.NDArray[np.int32]:
    codecs = original & attributes.CODEC if compression == "original" else np.int32(compression)
    changed = original & ~_REWRITTEN | codecs | np.where(appended, attributes.LOG_APPEND_TIME, 0)
    return changed.astype(np.int32)


def _check_borders(headers: npt.NDArray[Any]) -> None:
    base, last = headers["base_offset"], headers["last_offset"]
    wrong = (base < 0) | (last < base) | (last - base > _MAX_DELTA)
    wrong[1:] |= base[1:] <= last[:-1]
    if wrong.any():
        raise UnencodableBatch(
            "A batch can't be written: it begins before the end of the one before, or ends before it begins",
            base_offset=int(base[np.argmax(wrong)]),
        )


def _compressed(
    plain: npt.NDArray[np.uint8], headers: npt.NDArray[Any], codecs: npt.NDArray[np.int32]
) -> tuple[npt.NDArray[np.uint8], Int64Array]:
    """The same batches with their records compressed, and where each begins and the last one ends."""
    parts: list[bytearray | bytes | memoryview] = []
    sizes = np.empty(len(headers), np.int64)
    for index, (start, size, codec) in enumerate(
        zip(headers["position"].tolist(), headers["size"].tolist(), codecs.tolist(), strict=True)
    ):
        head = bytearray(plain.data[start : start + HEADER_BYTES])
        payload = _payload(plain.data[start + HEADER_BYTES : start + size], codec, int(headers["base_offset"][index]))
        _LENGTH.pack_into(head, _LENGTH_AT, HEADER_BYTES - _LENGTH_END + len(payload))
        parts += (head, payload)
        sizes[index] = HEADER_BYTES + len(payload)
    return np.frombuffer(bytearray().join(parts), np.uint8), np.append(0, np.cumsum(sizes))


def _payload(records: memoryview, codec: int, base_offset: int) -> bytes | memoryview:
    if codec == Codec.NONE:
        return records
    try:
        return deflate(Codec(codec), records)
    except ValueError as error:
        raise UnencodableBatch("A batch has no codec of the protocol", base_offset=base_offset, codec=codec) from error


def _fill_checksums(data: npt.NDArray[np.uint8], position: Int64Array) -> None:
    for start, end in pairwise(position.tolist()):
        _CHECKSUM.pack_into(data.data, start + _CHECKSUM_AT, crc32c(data[start + CHECKSUM_START : end]))
