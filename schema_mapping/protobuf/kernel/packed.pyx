# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Parses repeated numbers: packed runs, and single elements of fields whose canonical form is a run."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from schema_mapping.kernel.octets cimport load32, load64
from schema_mapping.protobuf.kernel.check cimport search_enum
from schema_mapping.protobuf.kernel.scratch cimport (
    BAD_PACKED, Rows, Scratch, TOO_LARGE, TRUNCATED, add_piece, fail, grow_rows, reserve_spill, spilled_slot,
)
from schema_mapping.protobuf.kernel.tables cimport (
    Field, OP_BOOL, OP_CLOSED_ENUM, OP_DOUBLE, OP_FLOAT, OP_INT32, OP_INT64, OP_LAST_VARINT, OP_OPEN_ENUM, OP_SINT32,
    OP_SINT64, OP_UINT32,
)
from schema_mapping.protobuf.kernel.texts cimport enum_text
from schema_mapping.protobuf.kernel.values cimport is_odd_double, is_odd_float, shaped, take_varint
from schema_mapping.protobuf.kernel.wire cimport varint_in_word, write_varint


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
    # Parses a single element of a field whose canonical form is packed.
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
    # Parses at most `count` elements between p and end. With fixed sizes, the range must hold a whole number of them.
    cdef Rows* rows = &s.spaces[field.space]
    cdef uint64_t* slot
    cdef uint64_t* first
    cdef uint8_t op = field.op
    cdef int64_t i
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
        slot = read_varints(s, p, end, first)
        if slot == NULL:
            return False
        shape_all(op, first, slot - first, &s.loose)
    elif op <= OP_DOUBLE:
        slot = first + count
        if copy_64(first, p, count) and op == OP_DOUBLE:
            for i in range(count):
                s.loose |= is_odd_double(first[i])
    else:
        slot = first + count
        if copy_32(first, p, count) and op == OP_FLOAT:
            for i in range(count):
                s.loose |= is_odd_float(<uint32_t>first[i])
    rows.count += slot - first
    row[field.slot] += slot - first
    return True


cdef uint64_t* read_varints(Scratch* s, const uint8_t* p, const uint8_t* end, uint64_t* slot) noexcept nogil:
    # Reads varints as they are, whatever their type. Returns the end of the slots.
    cdef uint64_t value = 0
    cdef uint64_t word
    cdef int loose = 0
    cdef int size, i
    while p < end:
        if end - p >= 8:
            word = load64(p)
            if not word & <uint64_t>0x8080808080808080:
                for i in range(8):
                    slot[i] = p[i]
                slot += 8
                p += 8
                continue
            size = varint_in_word(word, &value, &loose)
            if size:
                slot[0] = value
                slot += 1
                p += size
                continue
        p = take_varint(s, p, end, &value, &loose)
        if p == NULL:
            return NULL
        slot[0] = value
        slot += 1
    s.loose |= loose
    return slot


cdef void shape_all(uint8_t op, uint64_t* slots, int64_t count, int* loose) noexcept nogil:
    # Has one loop for each type, so that no loop checks the type.
    cdef int odd = 0
    cdef int64_t i
    if op == OP_INT64:
        return
    elif op == OP_INT32:
        for i in range(count):
            slots[i] = shaped(OP_INT32, slots[i], &odd)
    elif op == OP_UINT32:
        for i in range(count):
            slots[i] = shaped(OP_UINT32, slots[i], &odd)
    elif op == OP_SINT32:
        for i in range(count):
            slots[i] = shaped(OP_SINT32, slots[i], &odd)
    elif op == OP_SINT64:
        for i in range(count):
            slots[i] = shaped(OP_SINT64, slots[i], &odd)
    else:
        for i in range(count):
            slots[i] = shaped(OP_BOOL, slots[i], &odd)
    loose[0] |= odd


cdef bint copy_64(uint64_t* slots, const uint8_t* p, int64_t count) noexcept nogil:
    # Returns whether some double is infinite or NaN: its exponent is all ones.
    cdef uint64_t some = 0
    cdef int64_t i
    for i in range(count):
        slots[i] = load64(p + 8 * i)
        some |= (slots[i] & <uint64_t>0x7FF0000000000000) + <uint64_t>0x0010000000000000
    return some >> 63


cdef bint copy_32(uint64_t* slots, const uint8_t* p, int64_t count) noexcept nogil:
    cdef uint64_t some = 0
    cdef int64_t i
    for i in range(count):
        slots[i] = load32(p + 4 * i)
        some |= (slots[i] & 0x7F800000) + 0x00800000
    return (some >> 31) & 1


cdef bint parse_enums(
    Scratch* s, const Field* field, const uint8_t* p, const uint8_t* end, uint64_t* row
) noexcept nogil:
    # There is room for the elements already.
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
    # As in upb, a value of a packed run that the closed enum lacks becomes an unknown field of its own.
    cdef uint8_t* out = reserve_spill(s, 16)
    cdef uint8_t* after
    cdef int64_t start = s.spill_size
    if out == NULL:
        return False
    after = write_varint(write_varint(out, field.tag & ~<uint32_t>7), value)
    s.spill_size += after - out
    return add_piece(s, row + s.nodes[field.owner].unknown, spilled_slot(start, after - out))
