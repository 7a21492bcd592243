# Reads the smallest parts of a value (varints, lengths, numbers of a type), and records a failure.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from schema_mapping.kernel.octets cimport load64
from schema_mapping.protobuf.kernel.check cimport read_long_length, read_long_varint
from schema_mapping.protobuf.kernel.scratch cimport Scratch, TRUNCATED, fail
from schema_mapping.protobuf.kernel.tables cimport (
    OP_BOOL, OP_CLOSED_ENUM, OP_DOUBLE, OP_INT32, OP_INT64, OP_LAST_VARINT, OP_OPEN_ENUM, OP_SINT32, OP_SINT64,
    OP_UINT32, WIRE_32, WIRE_64, WIRE_VARINT,
)
from schema_mapping.protobuf.kernel.wire cimport varint_in_word


cdef inline const uint8_t* take_varint(
    Scratch* s, const uint8_t* p, const uint8_t* end, uint64_t* value, int* loose
) noexcept nogil:
    cdef int size
    if p < end and p[0] < 0x80:
        value[0] = p[0]
        return p + 1
    if s.limit - p >= 8:
        size = varint_in_word(load64(p), value, loose)
        if size != 0 and size <= end - p:
            return p + size
    p = read_long_varint(s, p, end)
    value[0] = s.value
    return p


cdef inline const uint8_t* take_length(
    Scratch* s, const uint8_t* p, const uint8_t* end, int64_t* length
) noexcept nogil:
    if p < end and p[0] < 0x80:
        length[0] = p[0]
        p += 1
        if length[0] > end - p:
            return fail(s, TRUNCATED, p - 1)
        return p
    p = read_long_length(s, p, end)
    length[0] = <int64_t>s.value
    return p


cdef inline uint64_t shaped(uint8_t op, uint64_t value, int* loose) noexcept nogil:
    # Converts a varint's bits as its type requires.
    cdef uint64_t result
    if op == OP_INT64:
        return value
    elif op == OP_INT32 or op == OP_OPEN_ENUM or op == OP_CLOSED_ENUM:
        result = <uint64_t><int64_t><int32_t><uint32_t>value
        loose[0] |= result != value
        return result
    elif op == OP_UINT32:
        loose[0] |= (value >> 32) != 0
        return <uint32_t>value
    elif op == OP_SINT32:
        loose[0] |= (value >> 32) != 0
        value = <uint32_t>value
        return <uint32_t>((value >> 1) ^ (0 - (value & 1)))
    elif op == OP_SINT64:
        return (value >> 1) ^ (0 - (value & 1))
    elif op == OP_BOOL:
        loose[0] |= value > 1
        return value != 0
    return value


cdef inline bint is_odd_double(uint64_t bits) noexcept nogil:
    return (bits & <uint64_t>0x7FFFFFFFFFFFFFFF) > <uint64_t>0x7FF0000000000000 and bits != <uint64_t>0x7FF8000000000000


cdef inline bint is_odd_float(uint32_t bits) noexcept nogil:
    return (bits & <uint32_t>0x7FFFFFFF) > <uint32_t>0x7F800000 and bits != <uint32_t>0x7FC00000


cdef inline uint32_t element_wire(uint8_t op) noexcept nogil:
    if op <= OP_LAST_VARINT:
        return WIRE_VARINT
    return WIRE_64 if op <= OP_DOUBLE else WIRE_32
