# Puts a value into its column, in the current row of the column's row space. Nodes without a column put nothing.

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t, uint8_t
from libc.string cimport memcpy

from schema_mapping.avro.kernel.reading cimport Reading, STOPPED, fail
from schema_mapping.avro.kernel.tables cimport Node
from schema_mapping.kernel.growing cimport Growing, mark, put_bytes, put_valid, ready


cdef inline int64_t row_of(Reading* r, const Growing* column) noexcept nogil:
    return r.counts[column.space] - 1


cdef inline const uint8_t* put32(Reading* r, const Node* node, uint32_t value, const uint8_t* p) noexcept nogil:
    cdef Growing* column
    cdef int64_t row
    if node.out < 0:
        return p
    column = &r.columns[node.out]
    row = row_of(r, column)
    if not ready(r.owner, column, row):
        return fail(r, STOPPED, p)
    (<uint32_t*>column.values)[row] = value
    mark(column, row)
    return p


cdef inline const uint8_t* put64(Reading* r, const Node* node, uint64_t value, const uint8_t* p) noexcept nogil:
    cdef Growing* column
    cdef int64_t row
    if node.out < 0:
        return p
    column = &r.columns[node.out]
    row = row_of(r, column)
    if not ready(r.owner, column, row):
        return fail(r, STOPPED, p)
    (<uint64_t*>column.values)[row] = value
    mark(column, row)
    return p


cdef inline const uint8_t* put_wide(
    Reading* r, const Node* node, const void* value, int64_t width, const uint8_t* p
) noexcept nogil:
    cdef Growing* column
    cdef int64_t row
    if node.out < 0:
        return p
    column = &r.columns[node.out]
    row = row_of(r, column)
    if not ready(r.owner, column, row):
        return fail(r, STOPPED, p)
    memcpy(column.values + row * width, value, width)
    mark(column, row)
    return p


cdef inline const uint8_t* put_boolean(Reading* r, const Node* node, bint value, const uint8_t* p) noexcept nogil:
    cdef Growing* column
    cdef int64_t row
    if node.out < 0:
        return p
    column = &r.columns[node.out]
    row = row_of(r, column)
    if not ready(r.owner, column, row):
        return fail(r, STOPPED, p)
    if value:
        column.values[row >> 3] |= 1 << (row & 7)
    mark(column, row)
    return p


cdef inline const uint8_t* put_text(
    Reading* r, int32_t out, const uint8_t* start, int64_t size, const uint8_t* p
) noexcept nogil:
    cdef Growing* column
    if out < 0:
        return p
    column = &r.columns[out]
    if not put_bytes(r.owner, column, row_of(r, column), start, size):
        return fail(r, STOPPED, p)
    return p


cdef inline const uint8_t* put_present(Reading* r, int32_t out, const uint8_t* p) noexcept nogil:
    cdef Growing* column
    if out < 0:
        return p
    column = &r.columns[out]
    if not put_valid(r.owner, column, row_of(r, column)):
        return fail(r, STOPPED, p)
    return p
