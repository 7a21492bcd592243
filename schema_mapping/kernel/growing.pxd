# Growing Arrow columns. A column lags behind its row space while its values are null: `ready` fills the gap.

from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint8_t
from libc.string cimport memcpy

cdef enum ColumnKind:
    COLUMN_BITS = 0     # validity alone
    COLUMN_BOOLEAN = 1
    COLUMN_NUMBERS = 2  # numbers or byte strings of `width` bytes
    COLUMN_BYTES = 3
    COLUMN_LIST = 4     # offsets of a list or map

cdef struct ColumnPlace:
    int32_t kind
    int32_t space
    int32_t width

cdef struct Growing:
    int32_t kind
    int32_t space
    int32_t width
    int32_t number
    int64_t rows        # rows that are written
    int64_t room        # rows that the buffers have room for
    uint8_t* bits       # validity; NULL while no row is null
    uint8_t* values     # numbers, bits of booleans, or room + 1 offsets
    uint8_t* data
    int64_t data_size   # of bytes; of a list, the last offset
    int64_t data_room

cdef enum Trouble:
    NO_TROUBLE = 0
    OUT_OF_MEMORY = 1
    COLUMN_TOO_LARGE = 2

cdef class GrowingColumns:
    cdef Growing* columns
    cdef int32_t count
    cdef list blocks
    cdef Trouble trouble

    cdef object buffers(self, int number, int64_t rows)
    cdef object cut(self, const Growing* column, int part, int64_t size)


cdef bint make_ready(void* owner, Growing* column, int64_t row) noexcept nogil
cdef bint make_data_room(void* owner, Growing* column, int64_t size) noexcept nogil
cdef void note_too_large(void* owner) noexcept nogil
cdef void take_back(Growing* column, int64_t rows) noexcept nogil


# Makes a column ready for its value in a row: earlier rows that it has nothing for become null.
cdef inline bint ready(void* owner, Growing* column, int64_t row) noexcept nogil:
    return (row == column.rows and row < column.room) or make_ready(owner, column, row)


cdef inline void mark(Growing* column, int64_t row) noexcept nogil:
    if column.bits != NULL:
        column.bits[row >> 3] |= 1 << (row & 7)
    column.rows = row + 1


cdef inline bint put_bytes(void* owner, Growing* column, int64_t row, const uint8_t* p, int64_t size) noexcept nogil:
    if not ready(owner, column, row):
        return False
    if column.data_size + size > column.data_room and not make_data_room(owner, column, size):
        return False
    if size:
        memcpy(column.data + column.data_size, p, size)
    column.data_size += size
    (<int32_t*>column.values)[row + 1] = <int32_t>column.data_size
    mark(column, row)
    return True


cdef inline bint put_valid(void* owner, Growing* column, int64_t row) noexcept nogil:
    if not ready(owner, column, row):
        return False
    mark(column, row)
    return True
