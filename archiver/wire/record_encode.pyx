# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, nonecheck=False
"""Writes record columns as uncompressed batches of format v2.

There are two passes: the first checks offsets and measures every record, the second writes into memory of exactly that
size. There is no Python object for each record.
"""

from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from archiver.wire.arrow_input cimport (
    ByteColumn, HeaderColumn, Text, byte_column, header_column, header_count, numbers, text,
)
from archiver.wire.batch_header cimport Header
from archiver.wire.checksum cimport crc32c

import numpy as np
import pyarrow as pa

from archiver.errors import UnencodableBatch
from archiver.wire import attributes

cdef int32_t _CODEC = attributes.CODEC

cdef enum:
    _HEADER_BYTES = 61
    _LENGTH_END = 12
    _CHECKSUM_AT = 17
    _CHECKSUM_START = 21
    _FIXED_BODY = 1         # attributes of a record: none are defined

cdef enum Status:
    OK
    BAD_OFFSETS
    BAD_COLUMNS
    TOO_LARGE

_REASONS = {
    BAD_OFFSETS: "its records' offsets do not rise, or lie outside the batch",
    TOO_LARGE: f"it would take more than {INT32_MAX} bytes, which its length field can't say",
}

cdef struct Records:
    const int64_t* offset
    const int64_t* timestamp
    ByteColumn key
    ByteColumn value
    HeaderColumn headers


cdef inline uint64_t _zigzag(int64_t number) noexcept nogil:
    return (<uint64_t>number << 1) ^ (0 - (<uint64_t>number >> 63))


cdef inline int _width(int64_t number) noexcept nogil:
    """The size of the number as a zigzag varint."""
    cdef uint64_t bits = _zigzag(number)
    cdef int width = 1
    while bits >= 0x80:
        bits >>= 7
        width += 1
    return width


cdef inline uint8_t* _number(uint8_t* out, int64_t number) noexcept nogil:
    cdef uint64_t bits = _zigzag(number)
    while bits >= 0x80:
        out[0] = <uint8_t>bits | 0x80
        out += 1
        bits >>= 7
    out[0] = <uint8_t>bits
    return out + 1


cdef inline uint8_t* _string(uint8_t* out, Text string) noexcept nogil:
    out = _number(out, string.length)
    if string.length > 0:
        memcpy(out, string.at, string.length)
        out += string.length
    return out


cdef inline int64_t _string_width(Text string) noexcept nogil:
    return _width(string.length) + <int64_t>max(string.length, 0)


cdef inline uint8_t* _be(uint8_t* out, uint64_t number, int width) noexcept nogil:
    cdef int place
    for place in range(width):
        out[place] = <uint8_t>(number >> 8 * (width - 1 - place))
    return out + width


cdef inline int64_t _since(const Header* header, int64_t timestamp) noexcept nogil:
    """The difference of two times, with overflow as in Java."""
    return <int64_t>(<uint64_t>timestamp - <uint64_t>header.base_timestamp)


cdef int64_t _body(const Records* r, const Header* header, int64_t row) noexcept nogil:
    """The size of the record after its length. Negative if Arrow forbids the offsets of its columns."""
    cdef Text key = text(&r.key, row), value = text(&r.value, row)
    cdef int32_t count = header_count(&r.headers, row)
    cdef int64_t each, size
    if key.length < -1 or value.length < -1 or count < 0:
        return -1
    size = _FIXED_BODY + _width(_since(header, r.timestamp[row])) + _width(r.offset[row] - header.base_offset)
    size += _string_width(key) + _string_width(value) + _width(count)
    for each in range(r.headers.end[row], r.headers.end[row] + <int64_t>count):
        key, value = text(&r.headers.key, each), text(&r.headers.value, each)
        if key.length < 0 or value.length < -1:
            return -1
        size += _string_width(key) + _string_width(value)
    return size


cdef Status _measure(
    const Records* r, const Header* header, int64_t first, int64_t end, int32_t* bodies, int64_t* size
) noexcept nogil:
    """The size of a batch's records, and of each one's body."""
    cdef int64_t row, body, previous = header.base_offset - 1
    size[0] = _HEADER_BYTES
    for row in range(first, end):
        if r.offset[row] <= previous or r.offset[row] > header.last_offset:
            return BAD_OFFSETS
        previous = r.offset[row]
        body = _body(r, header, row)
        if body < 0:
            return BAD_COLUMNS
        if body > INT32_MAX:
            return TOO_LARGE
        bodies[row] = <int32_t>body
        size[0] += _width(body) + body
        if size[0] - _LENGTH_END > INT32_MAX:
            return TOO_LARGE
    return OK


cdef uint8_t* _write_header(uint8_t* out, const Header* header) noexcept nogil:
    """Write a header. Its checksum is filled in later."""
    out = _be(out, <uint64_t>header.base_offset, 8)
    out = _be(out, <uint64_t>(header.size - _LENGTH_END), 4)
    out = _be(out, <uint32_t>header.leader_epoch, 4)
    out = _be(out, 2, 1)
    out = _be(out, 0, 4)
    out = _be(out, <uint64_t>header.attributes, 2)
    out = _be(out, <uint64_t>(header.last_offset - header.base_offset), 4)
    out = _be(out, <uint64_t>header.base_timestamp, 8)
    out = _be(out, <uint64_t>header.max_timestamp, 8)
    out = _be(out, <uint64_t>header.producer_id, 8)
    out = _be(out, <uint64_t>header.producer_epoch, 2)
    out = _be(out, <uint32_t>header.base_sequence, 4)
    return _be(out, <uint32_t>header.count, 4)


cdef uint8_t* _write_record(
    uint8_t* out, const Records* r, const Header* header, int64_t row, int32_t body
) noexcept nogil:
    cdef int64_t each, first = r.headers.end[row], end = r.headers.end[row + 1]
    out = _number(out, body)
    out[0] = 0
    out = _number(out + _FIXED_BODY, _since(header, r.timestamp[row]))
    out = _number(out, r.offset[row] - header.base_offset)
    out = _string(out, text(&r.key, row))
    out = _string(out, text(&r.value, row))
    out = _number(out, end - first)
    for each in range(first, end):
        out = _string(out, text(&r.headers.key, each))
        out = _string(out, text(&r.headers.value, each))
    return out


cdef class BatchWriter:
    """Writes the rows of `records` as batches: row `bounds[i]` up to `bounds[i + 1]` under `headers[i]`.

    `records` has the columns of `RECORDS`. The writer fills in two fields of the headers (`batch_header.HEADER`): `size`,
    the batch's size before compression, and `position`, where it lies among all batches. Raises `UnencodableBatch` if a
    batch can't be written, and ValueError if the columns are not those of records.
    """

    cdef Records at
    cdef object records
    cdef Header[::1] headers
    cdef const int64_t[::1] bounds
    cdef int32_t[::1] bodies
    cdef int64_t total

    def __init__(self, records, headers, bounds):
        cdef int64_t rows = records.num_rows
        self.records, self.headers, self.bounds = records, headers, bounds
        self.bodies = np.empty(rows, np.int32)
        self.at.offset = <const int64_t*>numbers(records.column("offset"), rows, pa.int64(), 8)
        self.at.timestamp = <const int64_t*>numbers(records.column("timestamp"), rows, pa.int64(), 8)
        self.at.key, self.at.value = byte_column(records.column("key"), rows), byte_column(records.column("value"), rows)
        self.at.headers = header_column(records.column("headers"), rows)
        self._measure_batches()

    cdef int _measure_batches(self) except -1:
        cdef int64_t wrong = 0
        cdef Status status
        with nogil:
            status = self._place(&wrong)
        if status == BAD_COLUMNS:
            raise ValueError("a column's offsets point outside its bytes, or a header has no key")
        if status != OK:
            base_offset = self.headers[wrong].base_offset
            raise UnencodableBatch(f"A batch can't be written: {_REASONS[status]}", base_offset=base_offset)
        return 0

    cdef Status _place(self, int64_t* wrong) noexcept nogil:
        """Fill in the headers' positions and sizes. If a batch can't be written, tell which one and why."""
        cdef int64_t batch, size
        cdef Status status
        for batch in range(self.headers.shape[0]):
            size = 0            # a pointer to the header's field would not be aligned
            status = _measure(
                &self.at, &self.headers[batch], self.bounds[batch], self.bounds[batch + 1], &self.bodies[0], &size
            )
            if status != OK:
                wrong[0] = batch
                return status
            self.headers[batch].position, self.headers[batch].size = self.total, size
            self.total += size
        return OK

    def write(self, int64_t first, int64_t end):
        """The batches from `first` up to `end` (without it), one after the other, as an array of bytes.

        Batches with a codec have no checksum yet: they will be compressed first.
        """
        if not 0 <= first <= end <= self.headers.shape[0]:
            raise IndexError(f"there are {self.headers.shape[0]} batches, not {first} up to {end}")
        cdef int64_t after = self.headers[end].position if end < self.headers.shape[0] else self.total
        out = np.empty(after - self.headers[first].position if first < end else 0, np.uint8)
        cdef uint8_t[::1] view = out
        if first < end:
            with nogil:
                self._write(first, end, &view[0])
        return out

    cdef void _write(self, int64_t first, int64_t end, uint8_t* out) noexcept nogil:
        cdef int64_t batch, row
        cdef uint8_t* start = out
        for batch in range(first, end):
            out = _write_header(start, &self.headers[batch])
            for row in range(self.bounds[batch], self.bounds[batch + 1]):
                out = _write_record(out, &self.at, &self.headers[batch], row, self.bodies[row])
            if not self.headers[batch].attributes & _CODEC:
                _seal(start, out - start)
            start = out


cdef inline void _seal(uint8_t* batch, int64_t size) noexcept nogil:
    _be(batch + _CHECKSUM_AT, crc32c(batch + _CHECKSUM_START, size - _CHECKSUM_START), 4)


def seal(uint8_t[::1] data not None, const int64_t[::1] position not None):
    """Write the checksum of each batch. Batch `i` lies in `data` from `position[i]` up to `position[i + 1]`."""
    cdef int64_t batch
    with nogil:
        for batch in range(position.shape[0] - 1):
            if (
                position[batch] < 0
                or position[batch + 1] > data.shape[0]
                or position[batch + 1] - position[batch] < _HEADER_BYTES
            ):
                raise ValueError("a batch lies outside the bytes, or is shorter than its own header")
            _seal(&data[0] + position[batch], position[batch + 1] - position[batch])
