# cython: language_level=3
"""Writes structs of Thrift's compact protocol. Fields come in the order of their ids."""

from libc.stdint cimport int64_t, uint8_t

from archiver.storage.parquet.columns.growing_bytes cimport Bytes, put, put_byte, put_varint, put_zigzag
from archiver.storage.parquet.compact_bytes cimport BINARY, FALSE, LIST, TRUE


cdef struct Fields:         # a struct that is being written
    Bytes* out
    int last                # the id of the field before


cdef inline Fields begin(Bytes* out) noexcept nogil:
    """Begin a struct. The caller has told that there is one, by `head` or as an element of a list."""
    cdef Fields fields
    fields.out, fields.last = out, 0
    return fields


cdef inline int head(Fields* fields, int identifier, int kind) except -1 nogil:
    """Begin a field. Its value follows; for truths the kind is the value."""
    put_byte(fields.out, <uint8_t>((identifier - fields.last) << 4 | kind))
    fields.last = identifier
    return 0


cdef inline int number(Fields* fields, int identifier, int kind, int64_t value) except -1 nogil:
    head(fields, identifier, kind)
    return put_zigzag(fields.out, value)


cdef inline int binary(Fields* fields, int identifier, const void* data, int64_t size) except -1 nogil:
    head(fields, identifier, BINARY)
    put_varint(fields.out, size)
    return put(fields.out, data, size)


cdef inline int truth(Fields* fields, int identifier, bint value) except -1 nogil:
    return head(fields, identifier, TRUE if value else FALSE)


cdef inline int listed(Fields* fields, int identifier, int kind, int64_t count) except -1 nogil:
    """Begin a list. So many elements follow. Truths among them are bytes of 1 and 2."""
    head(fields, identifier, LIST)
    if count < 15:
        return put_byte(fields.out, <uint8_t>(count << 4 | kind))
    put_byte(fields.out, <uint8_t>(0xF0 | kind))
    return put_varint(fields.out, count)


cdef inline int end(Fields* fields) except -1 nogil:
    return put_byte(fields.out, 0)
