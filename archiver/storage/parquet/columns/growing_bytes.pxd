# cython: language_level=3
"""Memory that grows as it is written."""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memset

cdef enum:
    SLACK = 16              # bytes beyond what was asked for: words may be stored whole


cdef struct Bytes:
    uint8_t* data
    int64_t size
    int64_t capacity


cdef inline int reserve(Bytes* out, int64_t more) except -1 nogil:
    """Make room for so many bytes behind those that are there."""
    cdef int64_t wanted = out.size + more + SLACK
    cdef uint8_t* moved
    if wanted <= out.capacity:
        return 0
    wanted += wanted >> 1
    moved = <uint8_t*>realloc(out.data, <size_t>wanted)
    if moved == NULL:
        with gil:
            raise MemoryError
    out.data, out.capacity = moved, wanted
    return 0


cdef inline uint8_t* extend(Bytes* out, int64_t more) except NULL nogil:
    """Add so many bytes, which the caller sets."""
    reserve(out, more)
    out.size += more
    return out.data + out.size - more


cdef inline int put(Bytes* out, const void* data, int64_t size) except -1 nogil:
    cdef uint8_t* at = extend(out, size)
    if size:
        memcpy(at, data, <size_t>size)
    return 0


cdef inline int put_zeros(Bytes* out, int64_t size) except -1 nogil:
    memset(extend(out, size), 0, <size_t>size)
    return 0


cdef inline int put_byte(Bytes* out, uint8_t byte) except -1 nogil:
    extend(out, 1)[0] = byte
    return 0


cdef inline int put_varint(Bytes* out, uint64_t number) except -1 nogil:
    """An unsigned LEB128, as Parquet and Thrift have it."""
    cdef uint8_t* at
    reserve(out, 10)
    at = out.data + out.size
    while number > 0x7F:
        at[0] = <uint8_t>(number | 0x80)
        at += 1
        number >>= 7
    at[0] = <uint8_t>number
    out.size = at + 1 - out.data
    return 0


cdef inline int put_zigzag(Bytes* out, int64_t number) except -1 nogil:
    return put_varint(out, (<uint64_t>number << 1) ^ <uint64_t>(number >> 63))


cdef inline void release(Bytes* out) noexcept nogil:
    free(out.data)
    out.data = NULL
    out.size = out.capacity = 0
