# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Parses the fields that the hot loop leaves out.

These are unknown fields, closed enums, and packed fields that are written unpacked or vice versa.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from schema_mapping.protobuf.kernel.check cimport search_enum, skip_unknown
from schema_mapping.protobuf.kernel.packed cimport parse_packed, parse_unpacked
from schema_mapping.protobuf.kernel.scratch cimport Scratch, add_piece, append_row, bytes_slot
from schema_mapping.protobuf.kernel.tables cimport (
    FIELD_LIST, FIELD_MANY, FIELD_PACKED, Field, Node, OP_ASIDE, OP_CLOSED_ENUM, OP_FLOAT, WIRE_BYTES,
    WIRE_VARINT,
)
from schema_mapping.protobuf.kernel.texts cimport enum_text
from schema_mapping.protobuf.kernel.undo cimport clear_field
from schema_mapping.protobuf.kernel.values cimport element_wire, shaped, take_length, take_varint


cdef void enter_oneof(Scratch* s, const Field* field, int found, uint64_t* row) noexcept nogil:
    # Makes the field the oneof's only member.
    cdef uint64_t before = row[field.oneof]
    row[field.oneof] = found
    if before != 0 and before != <uint64_t>found:
        s.loose = 1
        clear_field(s, &s.fields[before], row)


cdef inline uint64_t* open_slot(Scratch* s, const Field* field, int found, uint64_t* row) noexcept nogil:
    # The slot for the next value of a field; NULL if memory is out.
    cdef uint64_t* slot
    if field.flags & FIELD_LIST:
        slot = append_row(s, &s.spaces[field.space])
        if slot != NULL:
            row[field.slot] += 1
        return slot
    if field.oneof >= 0:
        enter_oneof(s, field, found, row)
    row[field.presence >> 6] |= <uint64_t>1 << (field.presence & 63)
    return row + field.slot


cdef const uint8_t* parse_other(
    Scratch* s, const Node* node, int found, uint32_t tag, const uint8_t* start, const uint8_t* p, const uint8_t* end,
    uint64_t* row, int depth, int* last, int odd
) noexcept nogil:
    # Parses a field that the hot loop leaves out: see the module's docstring.
    cdef const Field* field = &s.fields[found]
    cdef uint32_t wire = tag & 7
    cdef int64_t length = 0
    cdef uint64_t value = 0
    cdef uint64_t* slot
    cdef const uint8_t* after
    cdef int loose = s.loose
    if found != 0 and field.op <= OP_FLOAT:
        if wire == WIRE_BYTES and field.flags & FIELD_LIST:
            s.loose = 1
            p = take_length(s, p, end, &length)
            if p == NULL or not parse_packed(s, field, p, p + length, row):
                return NULL
            last[0] = found
            return p + length
        if field.op == OP_CLOSED_ENUM and wire == WIRE_VARINT:
            after = take_varint(s, p, end, &value, &s.loose)
            if after == NULL:
                return NULL
            if search_enum(s, field.enumeration, <int32_t><uint32_t>value) >= 0:
                if odd or field.flags & FIELD_PACKED or found < last[0] or (
                    found == last[0] and not field.flags & FIELD_MANY
                ):
                    s.loose = 1
                last[0] = found
                slot = open_slot(s, field, found, row)
                if slot == NULL:
                    return NULL
                slot[0] = enum_text(s, field.enumeration, <int32_t>shaped(OP_CLOSED_ENUM, value, &s.loose))
                return after
            s.loose = loose
        elif field.flags & FIELD_PACKED and wire == element_wire(field.op):
            s.loose = 1
            last[0] = found
            return parse_unpacked(s, field, p, end, row)
    after = skip_unknown(s, node, start, p, end, tag, depth)
    if after == NULL or not add_piece(s, row + node.unknown, bytes_slot(start - s.base, after - start)):
        return NULL
    if field.op == OP_ASIDE and tag == field.tag and last[0] != AFTER_ALL:
        s.loose |= found < last[0]
        last[0] = found
    else:
        last[0] = AFTER_ALL
    return after
