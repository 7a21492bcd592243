"""Encodes columns to batches of format v2.

An uncompressed batch with all its rows has the original bytes and checksum.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from archiver.codecs import Codec
from archiver.errors import UnencodableBatch
from archiver.wire import attributes
from archiver.wire.batch_header import HEADER_BYTES
from archiver.wire.columns import RECORDS, Int64Array
from archiver.wire.deflate import Zstd, deflate
from archiver.wire.record_encode import BatchWriter, seal
from archiver.wire.row_batches import batches_of

_LENGTH_AT: Final = 8
_LENGTH_END: Final = 12
_LENGTH: Final = struct.Struct(">i")

Compression = Literal["original"] | Codec


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedBatches:
    """Batch `i` is `data[position[i]:position[i + 1]]`."""

    data: memoryview
    base_offset: Int64Array
    last_offset: Int64Array
    position: Int64Array

    def __len__(self) -> int:
        return len(self.base_offset)

    def batch(self, index: int) -> memoryview:
        return self.data[int(self.position[index]) : int(self.position[index + 1])]


class BatchEncoder:
    """Encodes whole batches: measures all, then writes a few at a time.

    Neighbouring rows with equal `batch_start` are one batch. `compression` is "original" (each batch's codec) or one
    codec for all. Raises `UnencodableBatch` with the base offset for invalid batches and above 2 GiB, ValueError for
    other columns than `RECORDS`.
    """

    def __init__(
        self, records: pa.RecordBatch, *, compression: Compression = "original", zstd: Zstd | None = None
    ) -> None:
        schema = records.schema
        if not schema.equals(RECORDS) and (schema.types, schema.names) != (RECORDS.types, RECORDS.names):
            raise ValueError(f"these are not the columns of records: {records.schema}")
        self._headers, bounds = batches_of(records, None if compression == "original" else int(compression))
        self._writer = BatchWriter(records, self._headers, bounds)
        self._zstd = zstd

    def __len__(self) -> int:
        return len(self._headers)

    @property
    def sizes(self) -> Int64Array:
        """Before compression."""
        sizes: Int64Array = self._headers["size"]
        return sizes

    def write(self, first: int, end: int) -> EncodedBatches:
        """`end` is exclusive."""
        headers = self._headers[first:end]
        plain = self._writer.write(first, end)
        codecs = headers["attributes"] & attributes.CODEC
        starts = headers["position"] - headers["position"][:1]
        if codecs.any():
            data, position = _compressed(plain, headers, starts, codecs, self._zstd)
        else:
            data, position = plain, np.append(starts, len(plain))
        return EncodedBatches(
            data=data.data,
            base_offset=headers["base_offset"].copy(),
            last_offset=headers["last_offset"].copy(),
            position=position,
        )


def encode_batches(records: pa.RecordBatch, *, compression: Compression = "original") -> EncodedBatches:
    """Raises as `BatchEncoder` does."""
    encoder = BatchEncoder(records, compression=compression)
    return encoder.write(0, len(encoder))


def _compressed(
    plain: npt.NDArray[np.uint8],
    headers: npt.NDArray[Any],
    starts: Int64Array,
    codecs: npt.NDArray[np.int32],
    zstd: Zstd | None,
) -> tuple[npt.NDArray[np.uint8], Int64Array]:
    parts: list[bytearray | bytes | memoryview] = []
    sizes = np.empty(len(headers), np.int64)
    for index, (start, size, codec) in enumerate(
        zip(starts.tolist(), headers["size"].tolist(), codecs.tolist(), strict=True)
    ):
        head = bytearray(plain.data[start : start + HEADER_BYTES])
        records = plain.data[start + HEADER_BYTES : start + size]
        payload = _payload(records, codec, int(headers["base_offset"][index]), zstd)
        _LENGTH.pack_into(head, _LENGTH_AT, HEADER_BYTES - _LENGTH_END + len(payload))
        parts += (head, payload)
        sizes[index] = HEADER_BYTES + len(payload)
    data, position = np.frombuffer(bytearray().join(parts), np.uint8), np.append(0, np.cumsum(sizes))
    seal(data, position)
    return data, position


def _payload(records: memoryview, codec: int, base_offset: int, zstd: Zstd | None) -> bytes | memoryview:
    if codec == Codec.NONE:
        return records
    try:
        return deflate(Codec(codec), records, zstd)
    except ValueError as error:
        raise UnencodableBatch("A batch has no codec of the protocol", base_offset=base_offset, codec=codec) from error
