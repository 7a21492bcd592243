"""Arrow columns as the kernels of this package read them. Offsets are checked before anything is read through them."""

from libc.stdint cimport int32_t, int64_t, uint8_t


cdef struct ByteColumn:     # a column of byte strings
    const int32_t* end
    const uint8_t* data
    int64_t size
    const uint8_t* valid
    int64_t first_bit


cdef struct Text:           # one value; a length of -1 means null, a lower one means offsets that Arrow forbids
    const uint8_t* at
    int32_t length


cdef struct HeaderColumn:   # a column of lists of headers
    const int32_t* end
    int64_t count
    ByteColumn key
    ByteColumn value


cdef inline Text text(const ByteColumn* column, int64_t row) noexcept nogil:
    cdef Text found
    cdef int64_t bit = column.first_bit + row, start = column.end[row], end = column.end[row + 1]
    found.at, found.length = NULL, -1
    if column.valid != NULL and not (column.valid[bit >> 3] >> (bit & 7)) & 1:
        return found
    if start < 0 or end < start or end > column.size:
        found.length = -2
        return found
    found.at, found.length = column.data + start, <int32_t>(end - start)
    return found


cdef inline int32_t header_count(const HeaderColumn* column, int64_t row) noexcept nogil:
    """The number of headers of a row; they begin at `column.end[row]`. Negative if Arrow forbids these offsets."""
    cdef int64_t first = column.end[row], end = column.end[row + 1]
    return -1 if first < 0 or end < first or end > column.count else <int32_t>(end - first)


cdef uint8_t* numbers(object column, int64_t rows, object kind, int width, bint nulls=*) except? NULL
cdef uint8_t* bits(object column)
cdef ByteColumn byte_column(object column, int64_t rows) except *
cdef HeaderColumn header_column(object column, int64_t rows) except *
