"""Growing Arrow columns, to which the kernels of this package write the records that they read. A row is a record."""

from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memcpy

from archiver.wire.arrow_output cimport RecordOutput
from archiver.wire.batch_columns cimport BatchColumns
from schema_mapping.kernel.blocks cimport Block


cdef struct Bytes:          # a growing Arrow column of byte strings
    int32_t* end
    uint8_t* valid
    uint8_t* data
    int64_t used
    int64_t room
    int64_t nulls


cdef struct Columns:
    int64_t* offset
    int64_t* timestamp
    int32_t* headers_end
    Bytes key
    Bytes value
    Bytes name
    Bytes text
    int64_t rows
    int64_t rows_room
    int64_t headers
    int64_t headers_room


cdef enum:
    STRIDE = 16             # bytes to copy at once if both sides have as many


cdef inline void put(Bytes* column, int64_t row, const uint8_t* source, int32_t length, int64_t beyond) noexcept nogil:
    """Write row `row`. The caller has made room for it. A negative length means null, as in Java's reader.

    `beyond` bytes can be read from `source`. A short string is copied with bytes that follow it, which is faster.
    """
    if length < 0:
        column.valid[row >> 3] &= <uint8_t>~(1 << (row & 7))
        column.nulls += 1
    else:
        column.valid[row >> 3] |= <uint8_t>(1 << (row & 7))
        if length <= STRIDE and beyond >= STRIDE and column.room - column.used >= STRIDE:
            memcpy(column.data + column.used, source, STRIDE)
        else:
            memcpy(column.data + column.used, source, length)
        column.used += length
    column.end[row + 1] = <int32_t>column.used


cdef inline bint crowded(
    const Columns* out, int64_t key, int64_t value, int64_t headers, int64_t header_bytes
) noexcept nogil:
    """Whether there is no room for a record with these lengths and this number of headers."""
    return (
        key > out.key.room - out.key.used
        or value > out.value.room - out.value.used
        or headers > out.headers_room - out.headers
        or header_bytes > out.name.room - out.name.used
        or header_bytes > out.text.room - out.text.used
    )


cdef inline void end_row(Columns* out, int64_t offset, int64_t timestamp, int64_t headers) noexcept nogil:
    """End the current row. Its key, value and headers have been put."""
    out.offset[out.rows] = offset
    out.timestamp[out.rows] = timestamp
    out.headers += headers
    out.rows += 1
    out.headers_end[out.rows] = <int32_t>out.headers


cdef class Column:
    cdef Block block
    cdef uint8_t* reserve(self, int64_t size) except NULL


cdef class ByteStrings:
    cdef Column valid, end, data
    cdef int64_t reserve(self, Bytes* column, int64_t rows, int64_t room) except -1
    cdef int give(self, RecordOutput output, int place, const Bytes* column, int64_t rows) except -1


cdef class RecordSink:
    cdef Columns at
    cdef Column offset, timestamp, headers_end
    cdef ByteStrings key, value, name, text
    cdef BatchColumns batches
    cdef int64_t rows, size         # the expected totals of records and of their bytes
    cdef int64_t foresee(self, int64_t used) noexcept
    cdef int reserve(self, int64_t rows, int64_t headers, int64_t length) except -1
    cdef void cut_back(self, const Columns* mark) noexcept
    cdef int give(self, RecordOutput output) except -1
