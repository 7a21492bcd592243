# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Repeated numbers: packed runs, and single elements where the canonical form is a run."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from schema_mapping.kernel.check cimport search_enum
from schema_mapping.kernel.scratch cimport (
    BAD_PACKED, Rows, Scratch, TOO_LARGE, TRUNCATED, add_piece, fail, grow_rows, reserve_spill, spilled_slot,
)
from schema_mapping.kernel.tables cimport (
    Field, OP_CLOSED_ENUM, OP_DOUBLE, OP_FLOAT, OP_LAST_VARINT, OP_OPEN_ENUM,
)
from schema_mapping.kernel.texts cimport enum_text
from schema_mapping.kernel.values cimport is_odd_double, is_odd_float, shaped, take_varint
from schema_mapping.kernel.wire cimport load32, load64, varint_in_word, write_varint


cdef bint parse_packed(
    Scratch* s, const Field* field, const uint8_t* p, const uint8_t* end, uint64_t* row
) noexcept nogil:
    cdef int64_t count = 0
    cdef int64_t i
    if p == end:
        s.loose = 1
        return True
    if field.op <= OP_LAST_VARINT:
        for i in range(end - p):
            count += p[i] < 0x80
    elif (end - p) & (7 if field.op <= OP_DOUBLE else 3):
        fail(s, BAD_PACKED, p)
        return False
    else:
        count = (end - p) >> (3 if field.op <= OP_DOUBLE else 2)
    return parse_elements(s, field, p, end, count, row)


cdef const uint8_t* parse_unpacked(
    Scratch* s, const Field* field, const uint8_t* p, const uint8_t* end, uint64_t* row
) noexcept nogil:
    # One element, by itself, of a field whose canonical form is packed.
    cdef uint64_t value = 0
    cdef const uint8_t* after
    if field.op <= OP_LAST_VARINT:
        after = take_varint(s, p, end, &value, &s.loose)
        if after == NULL:
            return NULL
    else:
        after = p + (8 if field.op <= OP_DOUBLE else 4)
        if end - p < after - p:
            return fail(s, TRUNCATED, p)
    if not parse_elements(s, field, p, after, 1, row):
        return NULL
    return after


cdef bint parse_elements(
    Scratch* s, const Field* field, const uint8_t* p, const uint8_t* end, int64_t count, uint64_t* row
) noexcept nogil:
    # At most `count` elements between p and end, which is checked to be a whole number of fixed ones.
    cdef Rows* rows = &s.spaces[field.space]
    cdef uint64_t* slot
    cdef uint64_t* first
    cdef uint64_t value = 0
    cdef uint64_t word
    cdef uint8_t op = field.op
    cdef int size, i
    s.words += count
    if s.words > s.most_words:
        fail(s, TOO_LARGE, p)
        return False
    if rows.count + count > rows.capacity and not grow_rows(s, rows, count):
        return False
    first = rows.block + rows.count
    slot = first
    if op == OP_OPEN_ENUM or op == OP_CLOSED_ENUM:
        return parse_enums(s, field, p, end, row)
    if op <= OP_LAST_VARINT:
        while p < end:
            while end - p >= 8:
                word = load64(p)
                if word & <uint64_t>0x8080808080808080:
                    size = varint_in_word(word, &value, &s.loose)
                    if size == 0:
                        break
                    slot[0] = shaped(op, value, &s.loose)
                    slot += 1
                    p += size
                else:
                    for i in range(8):
                        slot[i] = shaped(op, p[i], &s.loose)
                    slot += 8
                    p += 8
            if p == end:
                break
            p = take_varint(s, p, end, &value, &s.loose)
            if p == NULL:
                return False
            slot[0] = shaped(op, value, &s.loose)
            slot += 1
    elif op <= OP_DOUBLE:
        while p < end:
            slot[0] = load64(p)
            if op == OP_DOUBLE and is_odd_double(slot[0]):
                s.loose = 1
            slot += 1
            p += 8
    else:
        while p < end:
            slot[0] = load32(p)
            if op == OP_FLOAT and is_odd_float(<uint32_t>slot[0]):
                s.loose = 1
            slot += 1
            p += 4
    rows.count += slot - first
    row[field.slot] += slot - first
    return True


cdef bint parse_enums(
    Scratch* s, const Field* field, const uint8_t* p, const uint8_t* end, uint64_t* row
) noexcept nogil:
    # Room for the elements is there already.
    cdef Rows* rows = &s.spaces[field.space]
    cdef uint64_t value = 0
    cdef int number
    while p < end:
        p = take_varint(s, p, end, &value, &s.loose)
        if p == NULL:
            return False
        number = <int32_t><uint32_t>value
        if field.op == OP_CLOSED_ENUM and search_enum(s, field.enumeration, number) < 0:
            s.loose = 1
            if not add_enum_to_unknown(s, field, value, row):
                return False
            continue
        value = enum_text(s, field.enumeration, <int32_t>shaped(OP_OPEN_ENUM, value, &s.loose))
        rows.block[rows.count] = value
        rows.count += 1
        row[field.slot] += 1
    return True


cdef bint add_enum_to_unknown(Scratch* s, const Field* field, uint64_t value, uint64_t* row) noexcept nogil:
    # As upb: a value of a packed run that the closed enum hasn't becomes an unknown field of its own.
    cdef uint8_t* out = reserve_spill(s, 16)
    cdef uint8_t* after
    cdef int64_t start = s.spill_size
    if out == NULL:
        return False
    after = write_varint(write_varint(out, field.tag & ~<uint32_t>7), value)
    s.spill_size += after - out
    return add_piece(s, row + s.nodes[field.owner].unknown, spilled_slot(start, after - out))
