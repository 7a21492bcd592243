# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, nonecheck=False
"""The records of batches (format v2) as Arrow columns.

No Python object is made per record; the loop holds no GIL and checks every bound, so any bytes end in columns or in
`CorruptBatch`. Checksums, compression, transactions and ownership of offsets are decided by the caller.
"""

from libc.stdint cimport INT64_MIN, int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcpy, memset

from archiver.wire.batch_header cimport Header, varint, varlong

import pyarrow as pa

from archiver.errors import CorruptBatch
from archiver.wire.columns import HEADER_TYPE

cdef enum:
    _SHORTEST_RECORD = 7    # seven fields of one byte
    _SHORTEST_HEADER = 2

cdef enum Status:
    OK
    GROW
    BAD_VARINT
    BAD_RECORD_LENGTH
    BAD_OFFSET
    BAD_KEY_LENGTH
    BAD_VALUE_LENGTH
    BAD_HEADER_COUNT
    BAD_HEADER_KEY
    BAD_HEADER_VALUE
    BAD_RECORD_END
    BAD_BATCH_END
    BAD_COUNT

_REASONS = {
    BAD_VARINT: "a varint is longer than its type allows or runs past the end",
    BAD_RECORD_LENGTH: "a record's length does not fit in the batch",
    BAD_OFFSET: "a record's offset does not rise, or lies outside the batch",
    BAD_KEY_LENGTH: "a key's length does not fit in its record",
    BAD_VALUE_LENGTH: "a value's length does not fit in its record",
    BAD_HEADER_COUNT: "a record's number of headers does not fit in it",
    BAD_HEADER_KEY: "a header key's length does not fit in its record",
    BAD_HEADER_VALUE: "a header value's length does not fit in its record",
    BAD_RECORD_END: "a record has bytes after its last header",
    BAD_BATCH_END: "the batch has bytes after its last record",
    BAD_COUNT: "the batch is too short for the number of records it declares",
}

cdef struct Section:        # the records of one batch, and how far they are read
    const uint8_t* at
    int64_t size
    int64_t pos
    int32_t count
    int32_t done
    int64_t base_offset
    int64_t base_timestamp
    int64_t last_delta      # of the batch, as its header has it
    int64_t delta           # of the record before
    int64_t time            # of the record before
    int64_t keep_from
    bint in_order           # the kept records have times, and these never fall

cdef struct Bytes:          # a growing Arrow column of byte strings
    int32_t* end
    uint8_t* valid
    uint8_t* data
    int64_t used
    int64_t room
    int64_t nulls

cdef struct Sink:
    int64_t* offset
    int64_t* timestamp
    int32_t* headers_end
    Bytes key
    Bytes value
    Bytes name
    Bytes text
    int64_t rows
    int64_t headers
    int64_t headers_room


cdef inline void _put(Bytes* column, int64_t row, const uint8_t* source, int32_t length) noexcept nogil:
    """Write row `row`; the caller has made room. A negative length is null, as Java's reader has it."""
    if length < 0:
        column.valid[row >> 3] &= <uint8_t>~(1 << (row & 7))
        column.nulls += 1
    else:
        column.valid[row >> 3] |= <uint8_t>(1 << (row & 7))
        memcpy(column.data + column.used, source, length)
        column.used += length
    column.end[row + 1] = <int32_t>column.used


cdef Status _headers(const uint8_t* at, int64_t* pos, int64_t end, int32_t count, Sink* out) noexcept nogil:
    """Read `count` headers, and write them unless `out` is null."""
    cdef int32_t length = 0
    cdef int64_t row
    for row in range(count):
        if not varint(at, pos, end, &length):
            return BAD_VARINT
        if length < 0 or length > end - pos[0]:
            return BAD_HEADER_KEY
        if out != NULL:
            _put(&out.name, out.headers + row, at + pos[0], length)
        pos[0] += length
        if not varint(at, pos, end, &length):
            return BAD_VARINT
        if length > end - pos[0]:
            return BAD_HEADER_VALUE
        if out != NULL:
            _put(&out.text, out.headers + row, at + pos[0], length)
        pos[0] += max(length, 0)
    return OK


cdef Status _record(Section* s, Sink* out) noexcept nogil:
    """Read one record. `GROW` leaves everything as it was; an error leaves a sink that nobody may read any more."""
    cdef const uint8_t* at = s.at
    cdef int64_t pos = s.pos, end, key_at, value_at, time_delta = 0
    cdef int32_t length = 0, delta = 0, key_length = 0, value_length = 0, headers = 0
    cdef Status status
    cdef bint keep
    if not varint(at, &pos, s.size, &length):
        return BAD_VARINT
    if length < _SHORTEST_RECORD - 1 or length > s.size - pos:
        return BAD_RECORD_LENGTH
    end = pos + length
    pos += 1                # attributes of a record: none are defined
    if not (varlong(at, &pos, end, &time_delta) and varint(at, &pos, end, &delta)):
        return BAD_VARINT
    if delta <= s.delta or delta > s.last_delta:
        return BAD_OFFSET
    if not varint(at, &pos, end, &key_length):
        return BAD_VARINT
    if key_length > end - pos:
        return BAD_KEY_LENGTH
    key_at = pos
    pos += max(key_length, 0)
    if not varint(at, &pos, end, &value_length):
        return BAD_VARINT
    if value_length > end - pos:
        return BAD_VALUE_LENGTH
    value_at = pos
    pos += max(value_length, 0)
    if not varint(at, &pos, end, &headers):
        return BAD_VARINT
    if headers < 0 or headers > (end - pos) / _SHORTEST_HEADER:
        return BAD_HEADER_COUNT
    keep = s.base_offset + delta >= s.keep_from
    if keep and _crowded(out, key_length, value_length, headers, end - pos):
        return GROW
    status = _headers(at, &pos, end, headers, out if keep else NULL)
    if status != OK:
        return status
    if pos != end:
        return BAD_RECORD_END
    s.pos = end
    s.done += 1
    s.delta = delta
    if keep:
        _keep(s, out, <int64_t>(<uint64_t>s.base_timestamp + <uint64_t>time_delta), headers)
        _put(&out.key, out.rows - 1, at + key_at, key_length)
        _put(&out.value, out.rows - 1, at + value_at, value_length)
    return OK


cdef inline bint _crowded(Sink* out, int64_t key, int64_t value, int64_t headers, int64_t header_bytes) noexcept nogil:
    return (
        key > out.key.room - out.key.used
        or value > out.value.room - out.value.used
        or headers > out.headers_room - out.headers
        or header_bytes > out.name.room - out.name.used
        or header_bytes > out.text.room - out.text.used
    )


cdef inline void _keep(Section* s, Sink* out, int64_t time, int32_t headers) noexcept nogil:
    if time == -1 or time < s.time:
        s.in_order = False
    s.time = time
    out.offset[out.rows] = s.base_offset + s.delta
    out.timestamp[out.rows] = time
    out.headers += headers
    out.rows += 1
    out.headers_end[out.rows] = <int32_t>out.headers


cdef Status _records(Section* s, Sink* out) noexcept nogil:
    cdef Status status
    while s.done < s.count:
        status = _record(s, out)
        if status != OK:
            return status
    return OK if s.pos == s.size else BAD_BATCH_END


cdef class Column:
    """A growing Arrow buffer."""

    cdef object buffer
    cdef uint8_t* at
    cdef int64_t size

    def __cinit__(self):
        self.buffer = pa.allocate_buffer(0, resizable=True)

    cdef uint8_t* reserve(self, int64_t size) except NULL:
        if size > self.size or self.size == 0:
            self.size = max(size, 2 * self.size, 1024)
            self.buffer.resize(self.size)
            self.at = <uint8_t*><uint64_t>self.buffer.address
        return self.at

    cdef object cut(self, int64_t size):
        # giving the spare room back would copy it all, for columns that live no longer than a chunk
        self.buffer.resize(size, shrink_to_fit=False)
        return self.buffer


cdef class ByteStrings:
    """The three buffers of a column of byte strings."""

    cdef Column valid, end, data

    def __cinit__(self):
        self.valid, self.end, self.data = Column(), Column(), Column()

    cdef int64_t reserve(self, Bytes* column, int64_t rows, int64_t room) except -1:
        """Make room for `rows` in all and `room` bytes in all; gives the rows there is room for now."""
        column.end = <int32_t*>self.end.reserve(4 * (rows + 1))
        column.valid = self.valid.reserve((rows >> 3) + 1)
        column.data = self.data.reserve(room)
        column.room = self.data.size
        column.end[0] = 0
        return min(self.end.size // 4 - 1, self.valid.size * 8)

    cdef object finish(self, Bytes* column, int64_t rows):
        bitmap = self.valid.cut((rows + 7) >> 3) if column.nulls else None
        buffers = [bitmap, self.end.cut(4 * (rows + 1)), self.data.cut(column.used)]
        return pa.Array.from_buffers(pa.binary(), rows, buffers, null_count=column.nulls)


cdef class RecordBuilder:
    """Collects the records of batches, one batch at a time, and gives them as Arrow arrays."""

    cdef Sink sink
    cdef Column offset, timestamp, headers_end
    cdef ByteStrings key, value, name, text

    def __cinit__(self):
        memset(&self.sink, 0, sizeof(Sink))
        self.offset, self.timestamp, self.headers_end = Column(), Column(), Column()
        self.key, self.value, self.name, self.text = ByteStrings(), ByteStrings(), ByteStrings(), ByteStrings()
        self._reserve(0, 0, 0)

    @property
    def rows(self):
        """Records collected so far."""
        return self.sink.rows

    def append(self, const uint8_t[::1] records, const Header[::1] headers, int64_t index, int64_t keep_from):
        """Add the decompressed records of the batch `headers[index]`, those from offset `keep_from` on.

        Gives whether each record added has a time and the times never fall. Raises `CorruptBatch`; the builder is then
        spent. The caller keeps what all batches hold together below 2 GiB, where Arrow's 32-bit offsets end.
        """
        cdef const Header* header = &headers[index]
        cdef Section s
        cdef Status status
        s.size = records.shape[0]
        s.at = &records[0] if s.size else NULL
        s.pos = s.done = 0
        s.count = header.count
        s.base_offset, s.base_timestamp = header.base_offset, header.base_timestamp
        s.last_delta = header.last_offset - header.base_offset
        s.delta, s.time, s.keep_from, s.in_order = -1, INT64_MIN, keep_from, True
        if s.count < 0 or s.count > s.size / _SHORTEST_RECORD:
            raise _corrupt(BAD_COUNT, &s)
        self._reserve(self.sink.rows + s.count, 0, 0)
        while True:
            with nogil:
                status = _records(&s, &self.sink)
            if status == OK:
                return bool(s.in_order)
            if status != GROW:
                raise _corrupt(status, &s)
            self._make_room(&s)

    cdef _make_room(self, Section* s):
        """Make room for the record at hand, whose length bounds each of its parts."""
        cdef int64_t pos = s.pos
        cdef int32_t length = 0
        varint(s.at, &pos, s.size, &length)
        self._reserve(self.sink.rows, length // _SHORTEST_HEADER, length)

    cdef _reserve(self, int64_t rows, int64_t headers, int64_t length):
        """Make room for `rows` in all, and for a record of `length` bytes with so many headers behind what is there."""
        cdef Sink* s = &self.sink
        s.offset = <int64_t*>self.offset.reserve(8 * rows)
        s.timestamp = <int64_t*>self.timestamp.reserve(8 * rows)
        s.headers_end = <int32_t*>self.headers_end.reserve(4 * (rows + 1))
        s.headers_end[0] = 0
        self.key.reserve(&s.key, rows, s.key.used + length)
        self.value.reserve(&s.value, rows, s.value.used + length)
        s.headers_room = min(
            self.name.reserve(&s.name, s.headers + headers, s.name.used + length),
            self.text.reserve(&s.text, s.headers + headers, s.text.used + length),
        )

    def finish(self):
        """Give the arrays of offset, timestamp, key, value and headers; the builder is then spent."""
        cdef Sink* s = &self.sink
        cdef int64_t rows = s.rows, headers = s.headers
        pairs = pa.Array.from_buffers(
            HEADER_TYPE, headers, [None],
            children=[self.name.finish(&s.name, headers), self.text.finish(&s.text, headers)],
        )
        list_type = pa.list_(pa.field("element", HEADER_TYPE, nullable=False))
        return (
            pa.Array.from_buffers(pa.int64(), rows, [None, self.offset.cut(8 * rows)]),
            pa.Array.from_buffers(pa.int64(), rows, [None, self.timestamp.cut(8 * rows)]),
            self.key.finish(&s.key, rows),
            self.value.finish(&s.value, rows),
            pa.Array.from_buffers(list_type, rows, [None, self.headers_end.cut(4 * (rows + 1))], children=[pairs]),
        )


cdef object _corrupt(Status status, Section* s):
    return CorruptBatch(
        f"The records of a batch contradict themselves: {_REASONS[status]}",
        base_offset=s.base_offset, record=s.done, byte=s.pos,
    )
