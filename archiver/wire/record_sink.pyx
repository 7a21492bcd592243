# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, nonecheck=False
"""The growing Arrow columns that decoded records are written to.

Kernels write through the struct `Columns` without the GIL and ask for room where they run out of it.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memset

import pyarrow as pa

from archiver.wire.columns import HEADER_TYPE, RECORDS

_POOL = pa.system_memory_pool()
_HEADERS = RECORDS.field("headers").type


cdef class Column:
    """A growing Arrow buffer."""

    def __cinit__(self):
        # Arrow's own pool gives large pages back at once, and fresh ones cost as much as the parsing
        self.buffer = pa.allocate_buffer(0, memory_pool=_POOL, resizable=True)

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


cdef class RecordSink:
    """Collects records and gives them as Arrow arrays."""

    def __cinit__(self):
        memset(&self.at, 0, sizeof(Columns))
        self.offset, self.timestamp, self.headers_end = Column(), Column(), Column()
        self.key, self.value, self.name, self.text = ByteStrings(), ByteStrings(), ByteStrings(), ByteStrings()
        self.reserve(0, 0, 0)

    def expect(self, int64_t rows, int64_t size):
        """Make room at once for `rows` records of `size` bytes in all; none of it is touched before it is used."""
        self.reserve(rows, 0, 0)
        self.value.reserve(&self.at.value, rows, size)

    cdef int reserve(self, int64_t rows, int64_t headers, int64_t length) except -1:
        """Make room for `rows` in all, and for a record of `length` bytes with so many headers behind what is there."""
        cdef Columns* at = &self.at
        at.offset = <int64_t*>self.offset.reserve(8 * rows)
        at.timestamp = <int64_t*>self.timestamp.reserve(8 * rows)
        at.headers_end = <int32_t*>self.headers_end.reserve(4 * (rows + 1))
        at.headers_end[0] = 0
        at.rows_room = max(at.rows_room, rows)
        self.key.reserve(&at.key, rows, at.key.used + length)
        self.value.reserve(&at.value, rows, at.value.used + length)
        at.headers_room = min(
            self.name.reserve(&at.name, at.headers + headers, at.name.used + length),
            self.text.reserve(&at.text, at.headers + headers, at.text.used + length),
        )
        return 0

    cdef void cut_back(self, const Columns* mark) noexcept:
        """Forget the rows added since `mark` was copied from `at`."""
        self.at.rows, self.at.headers = mark.rows, mark.headers
        _cut_back(&self.at.key, &mark.key)
        _cut_back(&self.at.value, &mark.value)
        _cut_back(&self.at.name, &mark.name)
        _cut_back(&self.at.text, &mark.text)

    def finish(self):
        """Give the arrays of offset, timestamp, key, value and headers; the sink is then spent."""
        cdef Columns* at = &self.at
        cdef int64_t rows = at.rows, headers = at.headers
        pairs = pa.Array.from_buffers(
            HEADER_TYPE, headers, [None],
            children=[self.name.finish(&at.name, headers), self.text.finish(&at.text, headers)],
        )
        return (
            pa.Array.from_buffers(pa.int64(), rows, [None, self.offset.cut(8 * rows)]),
            pa.Array.from_buffers(pa.int64(), rows, [None, self.timestamp.cut(8 * rows)]),
            self.key.finish(&at.key, rows),
            self.value.finish(&at.value, rows),
            pa.Array.from_buffers(_HEADERS, rows, [None, self.headers_end.cut(4 * (rows + 1))], children=[pairs]),
        )


cdef void _cut_back(Bytes* column, const Bytes* mark) noexcept:
    column.used, column.nulls = mark.used, mark.nulls
