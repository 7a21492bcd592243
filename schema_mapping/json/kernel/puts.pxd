# Puts a value into its column, in the current row of the column's row space; and what a value's first byte says.

from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memcpy

from schema_mapping.json.kernel.reading cimport OTHER_TYPE, STOPPED, Reading, fail, more_order, skip_space
from schema_mapping.json.kernel.scanning cimport skip_value
from schema_mapping.json.kernel.spans cimport copy_span
from schema_mapping.json.kernel.tables cimport (
    OP_ARRAY, OP_BOOLEAN, OP_CUT, OP_DOUBLE, OP_INT, OP_MAP, OP_OBJECT, OP_STRING, OP_TEXT,
)
from schema_mapping.kernel.growing cimport Growing, make_data_room, mark, put_bytes, put_valid, ready


cdef inline int64_t row_of(Reading* r, const Growing* column) noexcept nogil:
    return r.counts[column.space] - 1


cdef inline const uint8_t* put_number(
    Reading* r, int32_t out, const void* value, int width, const uint8_t* p
) noexcept nogil:
    cdef Growing* column = &r.columns[out]
    cdef int64_t row = row_of(r, column)
    if not ready(r.owner, column, row):
        return fail(r, STOPPED, p)
    memcpy(column.values + row * width, value, width)
    mark(column, row)
    return p


cdef inline const uint8_t* put_present(Reading* r, int32_t out, const uint8_t* p) noexcept nogil:
    cdef Growing* column
    if out < 0:
        return p
    column = &r.columns[out]
    return p if put_valid(r.owner, column, row_of(r, column)) else fail(r, STOPPED, p)


cdef inline const uint8_t* put_text(
    Reading* r, int32_t out, const uint8_t* start, int64_t size, const uint8_t* p
) noexcept nogil:
    cdef Growing* column = &r.columns[out]
    cdef int64_t row = row_of(r, column)
    if size > 16:
        return p if put_bytes(r.owner, column, row, start, size) else fail(r, STOPPED, p)
    if not ready(r.owner, column, row):
        return fail(r, STOPPED, p)
    if column.data_size + size > column.data_room and not make_data_room(r.owner, column, size):
        return fail(r, STOPPED, p)
    copy_span(column.data + column.data_size, start, size)
    column.data_size += size
    (<int32_t*>column.values)[row + 1] = <int32_t>column.data_size
    mark(column, row)
    return p


cdef inline const uint8_t* pass_space(Reading* r, const uint8_t* p) noexcept nogil:
    # Passes the space before a value, a comma or a bracket, if there is any.
    return p if p < r.end and p[0] > 32 else skip_space(p, r.end)


cdef inline bint takes(int op, uint8_t octet) noexcept nogil:
    # Whether a value that begins with a byte can be of a type.
    if op == OP_TEXT or op == OP_CUT:
        return True
    if octet == 0x22:
        return op == OP_STRING
    if octet == 0x7B:
        return op == OP_OBJECT or op == OP_MAP
    if octet == 0x5B:
        return op == OP_ARRAY
    if octet == b"t" or octet == b"f":
        return op == OP_BOOLEAN
    return (octet == b"-" or 48 <= octet <= 57) and OP_INT <= op <= OP_DOUBLE


cdef inline bint push_order(Reading* r, int32_t entry) noexcept nogil:
    if r.order_size == r.order_room and not more_order(r):
        return False
    r.order[r.order_size] = entry
    r.order_size += 1
    return True


cdef inline const uint8_t* refuse(Reading* r, const uint8_t* p, int depth) noexcept nogil:
    # Fails with a value that is JSON, but of another type; or with what isn't JSON.
    cdef const uint8_t* end = skip_value(r, p, depth)
    return NULL if end == NULL else fail(r, OTHER_TYPE, p)
