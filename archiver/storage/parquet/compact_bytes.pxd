# cython: language_level=3
"""Steps over bytes of Thrift's compact protocol that may be damaged: each is checked before it is read.

Nothing here raises. A reader that met what can't be is `broken`, and stays so; numbers are 0 then. What lies deeper than
`DEEPEST` can't be.
"""

from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t

cdef enum:
    DEEPEST = 12            # no struct of a footer is as deep

cdef enum:                  # kinds of values, as in compact_thrift.py
    STOP = 0
    TRUE = 1
    FALSE = 2
    I8 = 3
    I16 = 4
    I32 = 5
    I64 = 6
    DOUBLE = 7
    BINARY = 8
    LIST = 9
    SET = 10
    MAP = 11
    STRUCT = 12
    UUID = 13


cdef struct Reader:
    const uint8_t* at
    const uint8_t* end
    bint broken


cdef inline uint64_t varint(Reader* reader) noexcept nogil:
    """A number of at most ten bytes, modulo 2^64, as Thrift's own readers have it."""
    cdef uint64_t found = 0
    cdef int shift = 0
    cdef uint8_t byte
    while reader.at < reader.end and shift < 64:
        byte = reader.at[0]
        reader.at += 1
        found |= <uint64_t>(byte & 0x7F) << shift
        if not byte & 0x80:
            return found
        shift += 7
    reader.broken = True
    return 0


cdef inline int64_t integer(Reader* reader) noexcept nogil:
    cdef uint64_t found = varint(reader)
    return <int64_t>(found >> 1) ^ -<int64_t>(found & 1)


cdef inline int32_t short_integer(Reader* reader) noexcept nogil:
    """An integer of 32 bits; what goes beyond is cut off, as in Thrift's own readers."""
    cdef uint32_t found = <uint32_t>varint(reader)
    return <int32_t>(found >> 1) ^ -<int32_t>(found & 1)


cdef inline void pass_bytes(Reader* reader, uint64_t count) noexcept nogil:
    if count > <uint64_t>(reader.end - reader.at):
        reader.broken = True
    else:
        reader.at += count


cdef inline uint64_t size_of(Reader* reader, int kind) noexcept nogil:
    """The size of bytes whose kind has one, or that say it themselves."""
    if kind == I8:
        return 1
    if kind == DOUBLE:
        return 8
    if kind == UUID:
        return 16
    if kind == BINARY:
        return varint(reader)
    reader.broken = True
    return 0


cdef inline int field(Reader* reader, int64_t* identifier) noexcept nogil:
    """The kind of the next field, STOP where there is none. Its id goes to `identifier`, which has the one before."""
    cdef uint8_t step
    if reader.broken or reader.at >= reader.end:
        reader.broken = True
        return STOP
    step = reader.at[0]
    reader.at += 1
    if step & 15 == STOP:
        return STOP
    if step >> 4:
        identifier[0] = <int16_t>(identifier[0] + (step >> 4))      # as Thrift's own readers have it
    else:
        identifier[0] = <int16_t>integer(reader)
    return STOP if reader.broken else step & 15


cdef inline uint64_t list_size(Reader* reader, int* kind) noexcept nogil:
    """How many elements a list has. Each has a byte, so that there are never more of them than bytes left."""
    cdef uint8_t head
    cdef uint64_t size
    if reader.at >= reader.end:
        reader.broken = True
        return 0
    head = reader.at[0]
    reader.at += 1
    kind[0] = head & 15
    size = head >> 4 if head >> 4 != 15 else varint(reader)
    if size > <uint64_t>(reader.end - reader.at):
        reader.broken = True
        return 0
    return size


cdef inline void pass_map(Reader* reader, int depth) noexcept nogil:
    cdef uint64_t size = varint(reader)
    cdef uint8_t kinds
    if not size or reader.at >= reader.end:
        reader.broken |= size > 0
        return
    kinds = reader.at[0]
    reader.at += 1
    while size and not reader.broken:
        pass_value(reader, kinds >> 4, depth, True)
        pass_value(reader, kinds & 15, depth, True)
        size -= 1


cdef inline void pass_value(Reader* reader, int kind, int depth, bint is_element) noexcept nogil:
    """Step over a value in what is so deep. Truths among elements have a byte; those of fields are their kind."""
    cdef int inner = 0
    cdef int64_t identifier = 0
    cdef uint64_t size
    if reader.broken:
        return
    if kind == TRUE or kind == FALSE:
        pass_bytes(reader, is_element)
    elif kind == I16 or kind == I32 or kind == I64:
        varint(reader)
    elif LIST <= kind <= STRUCT and depth >= DEEPEST:
        reader.broken = True
    elif kind == LIST or kind == SET:
        size = list_size(reader, &inner)
        while size and not reader.broken:
            pass_value(reader, inner, depth + 1, True)
            size -= 1
    elif kind == MAP:
        pass_map(reader, depth + 1)
    elif kind == STRUCT:
        inner = field(reader, &identifier)
        while inner != STOP:
            pass_value(reader, inner, depth + 1, False)
            inner = field(reader, &identifier)
    else:
        pass_bytes(reader, size_of(reader, kind))
