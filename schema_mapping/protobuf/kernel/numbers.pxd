# Numbers of columns, as they are written on the wire.

from libc.stdint cimport INT64_MIN, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from schema_mapping.kernel.octets cimport load32, load64
from schema_mapping.protobuf.kernel.sources cimport Source, foresee
from schema_mapping.protobuf.kernel.tables cimport (
    FIELD_WIDE, Field, OP_BOOL, OP_DOUBLE, OP_FIXED32, OP_FIXED64, OP_FLOAT, OP_INT32, OP_INT64, OP_LAST_VARINT,
    OP_SINT32, OP_SINT64, OP_UINT32,
)
from schema_mapping.protobuf.kernel.wire cimport put_varint
from schema_mapping.protobuf.kernel.writer cimport NOT_A_NUMBER, Writer


cdef bint number_enums(Writer* w, int field_count) noexcept nogil
cdef int64_t enum_number(Writer* w, int index, const Source* source, int64_t at) noexcept nogil


cdef inline uint64_t wire_number(Writer* w, int index, const Source* source, int64_t at) noexcept nogil:
    # The bits of the varint or fixed number. Sets the failure if an enum's text has no number.
    cdef const Field* field = &w.fields[index]
    cdef uint64_t value
    cdef uint32_t half
    if field.op == OP_INT64 or field.op == OP_FIXED64 or field.op == OP_DOUBLE:
        foresee(source.values + at * 8)
        return load64(source.values + at * (16 if field.flags & FIELD_WIDE else 8))
    elif field.op == OP_INT32:
        foresee(source.values + at * 4)
        return <uint64_t><int64_t><int32_t>load32(source.values + at * 4)
    elif field.op == OP_UINT32 or field.op == OP_FIXED32 or field.op == OP_FLOAT:
        foresee(source.values + at * 4)
        return load32(source.values + at * 4)
    elif field.op == OP_BOOL:
        return (source.values[at >> 3] >> (at & 7)) & 1
    elif field.op == OP_SINT32:
        half = load32(source.values + at * 4)
        return <uint32_t>(half << 1) ^ (0 - (half >> 31))
    elif field.op == OP_SINT64:
        value = load64(source.values + at * 8)
        return (value << 1) ^ (0 - (value >> 63))
    if source.entries == NULL:
        return <uint64_t>enum_number(w, index, source, at)
    value = load64(source.values + source.entries[at] * <int64_t>8)
    if value == <uint64_t>INT64_MIN:
        w.failure = NOT_A_NUMBER
        w.failed_field = index
        return 0
    return value


cdef inline uint8_t* put_number(uint8_t* p, uint8_t op, uint64_t value) noexcept nogil:
    # Writes a number without its tag. The caller has made room.
    if op <= OP_LAST_VARINT:
        return put_varint(p, value)
    memcpy(p - 8, &value, 8)
    if op <= OP_DOUBLE:
        return p - 8
    memcpy(p - 4, &value, 4)
    return p - 4
