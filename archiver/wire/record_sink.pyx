# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, nonecheck=False
"""The growing Arrow columns for decoded records.

Kernels write through the struct `Columns` without the GIL, and ask for more room when they need it.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memset

from archiver.wire.arrow_output cimport HEADER, HEADER_KEY, HEADER_VALUE, RECORD, RecordOutput
from archiver.wire.batch_columns cimport BatchColumns
from schema_mapping.kernel.blocks cimport enlarged, new_block

from archiver.wire.columns import RECORDS

cdef enum:
    _SEEN = 8               # rows from which the sizes of the others are estimated
    _SPARE = 1024

cdef int _OFFSET = RECORDS.get_field_index("offset")
cdef int _TIMESTAMP = RECORDS.get_field_index("timestamp")
cdef int _KEY = RECORDS.get_field_index("key")
cdef int _VALUE = RECORDS.get_field_index("value")
cdef int _HEADERS = RECORDS.get_field_index("headers")


cdef class Column:
    """A growing buffer. It is never trimmed, because its columns live only as long as a chunk."""

    cdef uint8_t* reserve(self, int64_t size) except NULL:
        if self.block is None:
            self.block = new_block(max(size, 1024))
        elif size > self.block.capacity:
            self.block = enlarged(self.block, max(size, 2 * self.block.capacity))
        return self.block.data


cdef class ByteStrings:
    """The three buffers of a column of byte strings."""

    def __cinit__(self):
        self.valid, self.end, self.data = Column(), Column(), Column()

    cdef int64_t reserve(self, Bytes* column, int64_t rows, int64_t room) except -1:
        """Make room for `rows` rows and `room` bytes in total. Returns for how many rows there is room now."""
        column.end = <int32_t*>self.end.reserve(4 * (rows + 1))
        column.valid = self.valid.reserve((rows >> 3) + 1)
        column.data = self.data.reserve(room)
        column.room = self.data.block.capacity
        column.end[0] = 0
        return min(self.end.block.capacity // 4 - 1, self.valid.block.capacity * 8)

    cdef int give(self, RecordOutput output, int place, const Bytes* column, int64_t rows) except -1:
        output.put(place, rows, 1, self.end.block)
        output.put(place, rows, 2, self.data.block)
        output.put_validity(place, column.nulls, self.valid.block)
        return 0


cdef class RecordSink:
    """Collects records and hands them over as Arrow columns."""

    def __cinit__(self):
        memset(&self.at, 0, sizeof(Columns))
        self.offset, self.timestamp, self.headers_end = Column(), Column(), Column()
        self.key, self.value, self.name, self.text = ByteStrings(), ByteStrings(), ByteStrings(), ByteStrings()
        self.batches = BatchColumns()
        self.reserve(0, 0, 0)

    def expect(self, int64_t rows, int64_t size):
        """Make room at once for `rows` records of `size` bytes in total. No memory is touched before it is used."""
        self.rows, self.size = max(self.rows, rows), max(self.size, size)
        self.reserve(rows, 0, 0)
        self.value.reserve(&self.at.value, rows, size)

    cdef int64_t foresee(self, int64_t used) noexcept:
        """Estimate the bytes of a column for all expected rows, from the `used` bytes of the rows so far."""
        if used == 0 or self.at.rows < _SEEN or self.at.rows >= self.rows:
            return used
        return used + min(self.size, <int64_t>(<double>used * (1.05 * self.rows / self.at.rows - 1)) + _SPARE)

    cdef int reserve(self, int64_t rows, int64_t headers, int64_t length) except -1:
        """Make room for `rows` rows in total, and for one more record with `length` bytes and `headers` headers."""
        cdef Columns* at = &self.at
        at.offset = <int64_t*>self.offset.reserve(8 * rows)
        at.timestamp = <int64_t*>self.timestamp.reserve(8 * rows)
        at.headers_end = <int32_t*>self.headers_end.reserve(4 * (rows + 1))
        at.headers_end[0] = 0
        at.rows_room = max(at.rows_room, rows)
        self.batches.reserve(max(at.rows_room, 1))
        self.key.reserve(&at.key, rows, self.foresee(at.key.used + length))
        self.value.reserve(&at.value, rows, at.value.used + length)
        at.headers_room = min(
            self.name.reserve(&at.name, self.foresee(at.headers + headers), self.foresee(at.name.used + length)),
            self.text.reserve(&at.text, self.foresee(at.headers + headers), self.foresee(at.text.used + length)),
        )
        return 0

    cdef void cut_back(self, const Columns* mark) noexcept:
        """Drop the rows that were added since `mark` was copied from `at`."""
        self.at.rows, self.at.headers = mark.rows, mark.headers
        _cut_back(&self.at.key, &mark.key)
        _cut_back(&self.at.value, &mark.value)
        _cut_back(&self.at.name, &mark.name)
        _cut_back(&self.at.text, &mark.text)

    cdef int give(self, RecordOutput output) except -1:
        """Hand all columns to `output`. The sink must not be used again."""
        cdef Columns* at = &self.at
        output.put(_OFFSET, at.rows, 1, self.offset.block)
        output.put(_TIMESTAMP, at.rows, 1, self.timestamp.block)
        self.key.give(output, _KEY, &at.key, at.rows)
        self.value.give(output, _VALUE, &at.value, at.rows)
        output.put(_HEADERS, at.rows, 1, self.headers_end.block)
        output.arrays[RECORD].length, output.arrays[HEADER].length = at.rows, at.headers
        self.name.give(output, HEADER_KEY, &at.name, at.headers)
        self.text.give(output, HEADER_VALUE, &at.text, at.headers)
        return self.batches.give(output)


cdef void _cut_back(Bytes* column, const Bytes* mark) noexcept:
    column.used, column.nulls = mark.used, mark.nulls
