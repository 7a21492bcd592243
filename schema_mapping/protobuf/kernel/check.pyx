# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The slow paths of reading the wire: long varints, field searches, and bytes that are checked but get no columns.

It refuses what Google's upb refuses. A message without columns of its own is checked by its real type.
"""

from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t

from schema_mapping.protobuf.kernel.scratch cimport (
    BAD_GROUP, BAD_LENGTH, BAD_PACKED, BAD_TAG, BAD_UTF8, BAD_VARINT, BAD_WIRE_TYPE, Scratch, TOO_DEEP, TRUNCATED, fail,
)
from schema_mapping.protobuf.kernel.tables cimport (
    FIELD_LIST, OP_FIXED32, OP_FIXED64, OP_LAST_VARINT, OP_DOUBLE, OP_FLOAT, OP_GROUP, OP_MAP, OP_MESSAGE, OP_STRING,
    Enumeration, Field, NODE_EMPTY, NODE_MESSAGE_SET, Node, WIRE_32, WIRE_64, WIRE_BYTES, WIRE_END, WIRE_START,
    WIRE_VARINT,
)
from schema_mapping.protobuf.kernel.wire cimport is_cut_short, read_short, read_varint


cdef const uint8_t* read_tag(Scratch* s, const uint8_t* p, const uint8_t* end, uint32_t* tag, int* odd) noexcept nogil:
    cdef const uint8_t* after = read_short(p, end, <uint64_t>0xFFFFFFFF, tag, odd)
    if after == NULL:
        return fail(s, TRUNCATED if is_cut_short(p, end, 5) else BAD_TAG, p)
    if (tag[0] & 7) > WIRE_32:
        # A later comparison must not take such a tag for the one that means no field.
        return fail(s, BAD_WIRE_TYPE, p)
    return after


cdef const uint8_t* read_length(Scratch* s, const uint8_t* p, const uint8_t* end, uint32_t* length) noexcept nogil:
    # Reads a length, and checks that it fits in the rest of the surrounding message.
    cdef const uint8_t* after = read_short(p, end, 0x7FFFFFFF, length, &s.loose)
    if after == NULL:
        return fail(s, TRUNCATED if is_cut_short(p, end, 5) else BAD_LENGTH, p)
    if length[0] > end - after:
        return fail(s, TRUNCATED, p)
    return after


cdef const uint8_t* read_long_varint(Scratch* s, const uint8_t* p, const uint8_t* end) noexcept nogil:
    # Reads a varint of any length, also near the end of the readable bytes, to `s.value`.
    cdef const uint8_t* after = read_varint(p, end, &s.value, &s.loose)
    if after == NULL:
        return fail(s, TRUNCATED if is_cut_short(p, end, 10) else BAD_VARINT, p)
    return after


cdef const uint8_t* read_long_length(Scratch* s, const uint8_t* p, const uint8_t* end) noexcept nogil:
    # Reads a length to `s.value`.
    cdef uint32_t length = 0
    p = read_length(s, p, end, &length)
    s.value = length
    return p


cdef enum:
    UTF8_STEP = 6       # bits of a state's number

# States of reading UTF-8: between characters; before one, two or three continuation bytes; or before the special second
# byte of E0, ED, F0 and F4. A state's number is the position of its successor in the next byte's word.
cdef uint64_t UTF8[256]


cdef void fill_utf8() noexcept:
    cdef int whole = 0, one = 6, two = 12, three = 18, e0 = 24, ed = 30, f0 = 36, f4 = 42, bad = 48
    cdef int byte, lead
    cdef uint64_t word
    for byte in range(256):
        lead = bad
        if byte < 0x80:
            lead = whole
        elif 0xC2 <= byte < 0xE0:
            lead = one
        elif 0xE0 <= byte < 0xF0:
            lead = e0 if byte == 0xE0 else ed if byte == 0xED else two
        elif 0xF0 <= byte < 0xF5:
            lead = f0 if byte == 0xF0 else f4 if byte == 0xF4 else three
        word = <uint64_t>lead << whole | <uint64_t>bad << bad
        word |= <uint64_t>(whole if 0x80 <= byte < 0xC0 else bad) << one
        word |= <uint64_t>(one if 0x80 <= byte < 0xC0 else bad) << two
        word |= <uint64_t>(two if 0x80 <= byte < 0xC0 else bad) << three
        word |= <uint64_t>(one if 0xA0 <= byte < 0xC0 else bad) << e0
        word |= <uint64_t>(one if 0x80 <= byte < 0xA0 else bad) << ed
        word |= <uint64_t>(two if 0x90 <= byte < 0xC0 else bad) << f0
        word |= <uint64_t>(two if 0x80 <= byte < 0x90 else bad) << f4
        UTF8[byte] = word


fill_utf8()


cdef bint is_utf8(const uint8_t* p, const uint8_t* end) noexcept nogil:
    cdef uint64_t state = 0
    while p < end:
        state = UTF8[p[0]] >> (state & 63)
        p += 1
    return (state & 63) == 0


cdef int search_field(Scratch* s, const Node* node, uint32_t number) noexcept nogil:
    cdef int low = node.first_field
    cdef int high = node.first_field + node.field_count
    cdef int middle
    while low < high:
        middle = (low + high) >> 1
        if s.numbers[middle] < number:
            low = middle + 1
        else:
            high = middle
    if low < node.first_field + node.field_count and s.numbers[low] == number:
        return s.places[low]
    return 0


cdef int search_enum(Scratch* s, int enumeration, int number) noexcept nogil:
    cdef const Enumeration* e = &s.enums[enumeration]
    cdef int low = e.first
    cdef int high = e.first + e.count
    cdef int middle
    if number >= e.lowest and <uint32_t>number - <uint32_t>e.lowest < <uint32_t>e.dense:
        return s.enum_lookup[e.lookup + (<uint32_t>number - <uint32_t>e.lowest)]
    while low < high:
        middle = (low + high) >> 1
        if s.enum_numbers[middle] < number:
            low = middle + 1
        else:
            high = middle
    if low < e.first + e.count and s.enum_numbers[low] == number:
        return low
    return -1


cdef const uint8_t* skip_field(
    Scratch* s, const uint8_t* start, const uint8_t* p, const uint8_t* end, uint32_t tag, int depth
) noexcept nogil:
    # Skips a field's value: from after its tag, which is at `start`. Takes any field except number 0.
    return fail(s, BAD_TAG, start) if tag < 8 else skip_value(s, start, p, end, tag, depth)


cdef const uint8_t* skip_value(
    Scratch* s, const uint8_t* start, const uint8_t* p, const uint8_t* end, uint32_t tag, int depth
) noexcept nogil:
    # Whether the skipped value is canonical doesn't matter.
    cdef int loose = s.loose
    cdef uint32_t length
    cdef uint32_t wire = tag & 7
    if wire == WIRE_VARINT:
        p = read_long_varint(s, p, end)
        if p == NULL:
            return NULL
    elif wire == WIRE_64:
        if end - p < 8:
            return fail(s, TRUNCATED, p)
        p += 8
    elif wire == WIRE_32:
        if end - p < 4:
            return fail(s, TRUNCATED, p)
        p += 4
    elif wire == WIRE_BYTES:
        p = read_length(s, p, end, &length)
        if p == NULL:
            return NULL
        p += length
    elif wire == WIRE_START:
        if depth == 0:
            return fail(s, TOO_DEEP, start)
        p = skip_group(s, start, p, end, tag, depth - 1)
        if p == NULL:
            return NULL
    elif wire == WIRE_END:
        return fail(s, BAD_GROUP, start)
    else:
        return fail(s, BAD_WIRE_TYPE, start)
    s.loose = loose
    return p


cdef const uint8_t* skip_group(
    Scratch* s, const uint8_t* opened, const uint8_t* p, const uint8_t* end, uint32_t start_tag, int depth
) noexcept nogil:
    cdef uint32_t end_tag = (start_tag & ~<uint32_t>7) | WIRE_END
    cdef uint32_t tag
    cdef int odd
    cdef const uint8_t* start
    while p < end:
        start = p
        p = read_tag(s, p, end, &tag, &odd)
        if p == NULL:
            return NULL
        if tag == end_tag:
            return p
        # upb doesn't check field numbers in an unknown group.
        p = skip_value(s, start, p, end, tag, depth)
        if p == NULL:
            return NULL
    return fail(s, BAD_GROUP, opened)


cdef const uint8_t* check_packed(
    Scratch* s, const Field* field, const uint8_t* p, const uint8_t* end
) noexcept nogil:
    if field.op <= OP_LAST_VARINT:
        while p < end:
            p = read_long_varint(s, p, end)
            if p == NULL:
                return NULL
    elif field.op <= OP_DOUBLE:
        if (end - p) & 7:
            return fail(s, BAD_PACKED, p)
    elif (end - p) & 3:
        return fail(s, BAD_PACKED, p)
    return end


cdef const uint8_t* check_message(
    Scratch* s, const Node* node, const uint8_t* p, const uint8_t* end, int depth, uint32_t group,
    const uint8_t** content_end
) noexcept nogil:
    # Checks a message that stays bytes. For a group, `end` is the end of the surrounding message, and the result is the
    # position after the group's end tag. `loose` doesn't change.
    cdef int loose = s.loose
    cdef uint32_t tag, number, length
    cdef int odd
    cdef const uint8_t* start
    cdef const Field* field
    while p < end:
        start = p
        p = read_tag(s, p, end, &tag, &odd)
        if p == NULL:
            return NULL
        number = tag >> 3
        if number == 0 and not node.flags & NODE_EMPTY:
            return fail(s, BAD_TAG, start)
        if (tag & 7) == WIRE_END:
            if group == 0 or number != group:
                return fail(s, BAD_GROUP, start)
            s.loose = loose
            content_end[0] = start
            return p
        field = &s.fields[search_field(s, node, number)]
        if (tag & 7) == WIRE_BYTES and (field.op >= OP_STRING or field.flags & FIELD_LIST) and field.op != OP_GROUP:
            p = read_length(s, p, end, &length)
            if p == NULL:
                return NULL
            if field.op == OP_STRING:
                if not is_utf8(p, p + length):
                    return fail(s, BAD_UTF8, p)
            elif field.op == OP_MESSAGE or field.op == OP_MAP:
                if depth == 0:
                    return fail(s, TOO_DEEP, start)
                if check_message(s, &s.nodes[field.node], p, p + length, depth - 1, 0, content_end) == NULL:
                    return NULL
            elif field.op < OP_STRING and check_packed(s, field, p, p + length) == NULL:
                return NULL
            p += length
        elif (tag & 7) == WIRE_START and field.op == OP_GROUP:
            if depth == 0:
                return fail(s, TOO_DEEP, start)
            p = check_message(s, &s.nodes[field.node], p, end, depth - 1, number, content_end)
            if p == NULL:
                return NULL
        else:
            p = skip_unknown(s, node, start, p, end, tag, depth)
            if p == NULL:
                return NULL
    if group:
        return fail(s, BAD_GROUP, end)
    s.loose = loose
    content_end[0] = end
    return end


cdef const uint8_t* skip_unknown(
    Scratch* s, const Node* node, const uint8_t* start, const uint8_t* p, const uint8_t* end, uint32_t tag, int depth
) noexcept nogil:
    # upb reads an item of a message set at the depth of the set itself.
    if node.flags & NODE_MESSAGE_SET and tag == (1 << 3 | WIRE_START):
        return skip_field(s, start, p, end, tag, depth + 1)
    # upb doesn't check field numbers in a message type without fields.
    if node.flags & NODE_EMPTY:
        return skip_value(s, start, p, end, tag, depth)
    return skip_field(s, start, p, end, tag, depth)
