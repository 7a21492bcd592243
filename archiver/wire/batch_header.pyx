# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, nonecheck=False
"""The headers of record batches (format v2), walked over without touching their records.

Offsets and lengths lie outside a batch's checksum, so the walk checks them against each other: batches follow one another,
and each lies inside the bytes. A batch that the bytes hold only a part of ends the walk, as Fetch responses end.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

import numpy as np

from archiver.errors import CorruptBatch, UnsupportedBatch

HEADER_BYTES = 61
"""Bytes of a batch in front of its records."""

CHECKSUM_START = 21
"""Where, in a batch, the bytes begin that its CRC-32C covers; they reach to its end."""

HEADER = np.dtype([
    ("position", "i8"), ("size", "i8"), ("base_offset", "i8"), ("last_offset", "i8"), ("base_timestamp", "i8"),
    ("max_timestamp", "i8"), ("producer_id", "i8"), ("crc", "u4"), ("leader_epoch", "i4"), ("attributes", "i4"),
    ("producer_epoch", "i4"), ("base_sequence", "i4"), ("count", "i4"),
])
"""One batch: `position` and `size` in the bytes scanned, then the fields of its header, its last offset as an offset."""

cdef enum:
    _HEADER_BYTES = 61
    _LENGTH_END = 12        # the length field counts the bytes after itself
    _MAGIC_END = 17

cdef enum Stop:
    AT_END                  # of the bytes, or in front of a batch that they hold only a part of
    AT_NEXT_RANGE
    AT_BAD_MAGIC
    AT_BAD_LENGTH
    AT_BAD_OFFSETS

_REASONS = {
    AT_BAD_MAGIC: "its format does not exist",
    AT_BAD_LENGTH: "it is shorter than its own header",
    AT_BAD_OFFSETS: "its offsets do not follow those of the batch before, or fall",
}


cdef inline uint32_t _be32(const uint8_t* at) noexcept nogil:
    return (<uint32_t>at[0] << 24) | (<uint32_t>at[1] << 16) | (<uint32_t>at[2] << 8) | <uint32_t>at[3]


cdef inline uint64_t _be64(const uint8_t* at) noexcept nogil:
    return (<uint64_t>_be32(at) << 32) | _be32(at + 4)


cdef inline int32_t _be16(const uint8_t* at) noexcept nogil:
    cdef int32_t value = (<int32_t>at[0] << 8) | at[1]
    return value - 65536 if value >= 32768 else value


cdef void _fill(Header* header, const uint8_t* at) noexcept nogil:
    header.leader_epoch = <int32_t>_be32(at + 12)
    header.crc = _be32(at + 17)
    header.attributes = _be16(at + 21)
    header.base_timestamp = <int64_t>_be64(at + 27)
    header.max_timestamp = <int64_t>_be64(at + 35)
    header.producer_id = <int64_t>_be64(at + 43)
    header.producer_epoch = _be16(at + 51)
    header.base_sequence = <int32_t>_be32(at + 53)
    header.count = <int32_t>_be32(at + 57)


cdef Stop _walk(
    const uint8_t* data, int64_t size, int64_t end_offset, Header* out, int64_t* found, int64_t* position
) noexcept nogil:
    """Step from batch to batch; `out` is null in the pass that only counts."""
    cdef int64_t length, base, last, previous = -1
    cdef const uint8_t* at
    cdef Header* header
    found[0] = position[0] = 0
    while size - position[0] >= _MAGIC_END:
        at = data + position[0]
        if at[16] != 2:
            return AT_BAD_MAGIC
        length = <int32_t>_be32(at + 8)
        if length < _HEADER_BYTES - _LENGTH_END:
            return AT_BAD_LENGTH
        if length > size - position[0] - _LENGTH_END:
            return AT_END
        base = <int64_t>_be64(at)
        last = <int64_t>(<uint64_t>base + <uint64_t><int64_t><int32_t>_be32(at + 23))
        if base <= previous or last < base:
            return AT_BAD_OFFSETS
        if base >= end_offset:
            return AT_NEXT_RANGE
        if out != NULL:
            header = out + found[0]
            header.position, header.size = position[0], length + _LENGTH_END
            header.base_offset, header.last_offset = base, last
            _fill(header, at)
        previous = last
        found[0] += 1
        position[0] += length + _LENGTH_END
    return AT_END


def scan(const uint8_t[::1] data, int64_t end_offset):
    """Give the headers of the whole batches that begin below `end_offset`, whether one at or above it was seen, and the
    error to raise once these batches are read, or None.

    The error is `CorruptBatch` where lengths or offsets contradict each other, `UnsupportedBatch` for formats before v2.
    It comes last because a wrong length shows only behind its batch, whose checksum then names the one to blame.
    """
    cdef int64_t size = data.shape[0], found = 0, position = 0
    cdef const uint8_t* at = &data[0] if size else NULL
    cdef Header[::1] out
    cdef Stop stop
    with nogil:
        stop = _walk(at, size, end_offset, NULL, &found, &position)
    headers = np.empty(found, dtype=HEADER)
    if found:
        out = headers
        with nogil:
            _walk(at, size, end_offset, &out[0], &found, &position)
    if stop == AT_END or stop == AT_NEXT_RANGE:
        return headers, stop == AT_NEXT_RANGE, None
    base = <int64_t>_be64(at + position)
    if stop == AT_BAD_MAGIC and at[position + 16] < 2:
        error = UnsupportedBatch(
            f"Message format v{at[position + 16]} (before Kafka 0.11) is not read; archive a copy of the topic in v2",
            base_offset=base, position=position,
        )
    else:
        error = CorruptBatch(f"A batch contradicts itself: {_REASONS[stop]}", base_offset=base, position=position)
    return headers, False, error


def control_type(const uint8_t[::1] records):
    """The type of a control batch by its first record: 0 abort, 1 commit, others as they are; -1 if it has none."""
    cdef const uint8_t* at
    cdef int64_t pos = 0, end = records.shape[0], time_delta = 0
    cdef int32_t length = 0
    if end == 0:
        return -1
    at = &records[0]
    if not varint(at, &pos, end, &length):
        return -1
    pos += 1                # attributes of a record: none are defined
    if not (varlong(at, &pos, end, &time_delta) and varint(at, &pos, end, &length) and varint(at, &pos, end, &length)):
        return -1
    return _be16(at + pos + 2) if length >= 4 and end - pos >= 4 else -1
