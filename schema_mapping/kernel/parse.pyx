# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The hot loop of decoding: a message's bytes into slots, and whether a canonical writer wrote them (DESIGN 2).

Canonical: fields ascending by number, each once, the shortest varints, no implicit default, one packed run, map entries
of key and value, unknown fields last. The first step away from it sets `loose`, and the value is then also kept raw.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from schema_mapping.kernel.check cimport (
    check_message, is_utf8, read_length, read_tag, search_enum, search_field, skip_unknown,
)
from schema_mapping.kernel.scratch cimport (
    BAD_GROUP, BAD_PACKED, BAD_UTF8, BAD_VARINT, Rows, Scratch, TOO_DEEP, TOO_LARGE, TRUNCATED, add_piece,
    append_row, bytes_slot, fail, grow_rows, reserve_spill, spilled_slot,
)
from schema_mapping.kernel.tables cimport (
    FIELD_IMPLICIT, FIELD_LIST, FIELD_MANY, FIELD_PACKED, Field, NODE_CUT, NODE_ENTRY, Node, OP_BOOL, OP_BYTES,
    OP_CLOSED_ENUM, OP_DOUBLE, OP_FIXED32, OP_FIXED64, OP_FLOAT, OP_GROUP, OP_INT32, OP_INT64, OP_LAST_VARINT, OP_MAP,
    OP_MESSAGE, OP_OPEN_ENUM, OP_SINT32, OP_SINT64, OP_STRING, OP_TEXT, OP_UINT32, WIRE_32, WIRE_64, WIRE_BYTES,
    WIRE_END, WIRE_START, WIRE_VARINT,
)
from schema_mapping.kernel.wire cimport (
    is_ascii, is_cut_short, load32, load64, read_varint, utf8_step, varint_in_word, write_decimal, write_varint,
)

cdef enum:
    AFTER_ALL = 0x7FFFFFFF


cdef inline const uint8_t* take_varint(
    Scratch* s, const uint8_t* p, const uint8_t* end, uint64_t* value
) noexcept nogil:
    cdef const uint8_t* after
    cdef int size
    if p < end and p[0] < 0x80:
        value[0] = p[0]
        return p + 1
    if end - p >= 2 and p[1] < 0x80 and p[1] != 0:
        value[0] = (p[0] & 0x7F) | <uint64_t>p[1] << 7
        return p + 2
    if end - p >= 8:
        size = varint_in_word(load64(p), value, &s.loose)
        if size:
            return p + size
    after = read_varint(p, end, value, &s.loose)
    if after == NULL:
        return fail(s, TRUNCATED if is_cut_short(p, end, 10) else BAD_VARINT, p)
    return after


cdef inline const uint8_t* take_length(
    Scratch* s, const uint8_t* p, const uint8_t* end, uint32_t* length
) noexcept nogil:
    if p < end and p[0] < 0x80:
        length[0] = p[0]
        p += 1
        if <int64_t>length[0] > end - p:
            return fail(s, TRUNCATED, p - 1)
        return p
    return read_length(s, p, end, length)


cdef inline uint64_t shaped(uint8_t op, uint64_t value, int* loose) noexcept nogil:
    # A varint's bits as its type reads them.
    cdef uint64_t result
    if op == OP_INT32 or op == OP_OPEN_ENUM or op == OP_CLOSED_ENUM:
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


cdef void enter_oneof(Scratch* s, const Field* field, int found, uint64_t* row) noexcept nogil:
    # The field becomes the oneof's only member.
    cdef uint64_t before = row[field.oneof]
    row[field.oneof] = found
    if before != 0 and before != <uint64_t>found:
        s.loose = 1
        clear_field(s, &s.fields[before], row)


cdef inline uint64_t* open_slot(Scratch* s, const Field* field, int found, uint64_t* row) noexcept nogil:
    # Where the next value of a field goes; NULL when memory is out.
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


cdef inline bint is_whole_entry(Scratch* s, const Node* entry, const uint64_t* row) noexcept nogil:
    # Both there; that they came once and in order is seen elsewhere.
    cdef int key = s.fields[entry.first_field].presence
    cdef int value = s.fields[entry.first_field + 1].presence
    return (row[key >> 6] >> (key & 63)) & (row[value >> 6] >> (value & 63)) & 1


cdef const uint8_t* parse_message(
    Scratch* s, const Node* node, const uint8_t* p, const uint8_t* end, uint64_t* row, int depth, uint32_t group
) noexcept nogil:
    # For a group, `end` is the end of what surrounds it, and the answer the place after its end tag.
    cdef const Field* fields = s.fields
    cdef const int32_t* lookup = s.lookup + node.lookup
    cdef uint32_t dense = node.dense
    cdef const Field* field
    cdef const uint8_t* start
    cdef uint64_t* slot
    cdef uint64_t value = 0
    cdef uint32_t tag = 0
    cdef uint32_t length = 0
    cdef int found
    cdef int last = -1
    cdef uint64_t present = 0   # bits for the first word of the row
    cdef int odd                # the tag is not minimal, or the field comes too late
    while p < end:
        odd = 0
        start = p
        tag = p[0]
        p += 1
        if tag >= 0x80:
            if p < end and p[0] < 0x80 and p[0] != 0:
                tag = (tag & 0x7F) | <uint32_t>p[0] << 7
                p += 1
            else:
                p = read_tag(s, start, end, &tag, &odd)
                if p == NULL:
                    return NULL
        found = lookup[tag >> 3] if (tag >> 3) < dense else search_field(s, node, tag >> 3)
        field = &fields[found]
        if field.match != tag:
            if (tag & 7) == WIRE_END:
                if group == 0 or tag >> 3 != group:
                    return fail(s, BAD_GROUP, start)
                s.loose |= odd
                row[0] |= present
                return p
            row[0] |= present
            present = 0
            p = parse_other(s, node, found, tag, start, p, end, row, depth, &last, odd)
            if p == NULL:
                return NULL
            continue
        if found <= last and not (found == last and field.flags & FIELD_MANY):
            odd = 1
        if odd and field.op != OP_MAP:
            s.loose = 1
        last = found
        if field.flags & FIELD_PACKED:
            p = take_length(s, p, end, &length)
            if p == NULL or not parse_packed(s, field, p, p + length, row):
                return NULL
            p += length
            continue
        if field.flags & FIELD_LIST:
            slot = append_row(s, &s.spaces[field.space])
            if slot == NULL:
                return NULL
            row[field.slot] += 1
        else:
            if field.oneof >= 0 and row[field.oneof] != <uint64_t>found:
                row[0] |= present
                present = 0
                enter_oneof(s, field, found, row)
            if field.presence < 64:
                present |= <uint64_t>1 << field.presence
            else:
                row[field.presence >> 6] |= <uint64_t>1 << (field.presence & 63)
            slot = row + field.slot
        if field.op <= OP_LAST_VARINT:
            p = take_varint(s, p, end, &value)
            if p == NULL:
                return NULL
            value = shaped(field.op, value, &s.loose)
            if value == 0 and field.flags & FIELD_IMPLICIT:
                s.loose = 1
            if field.op == OP_OPEN_ENUM:
                value = enum_text(s, field.enumeration, <int32_t>value)
            slot[0] = value
        elif field.op <= OP_DOUBLE:
            if end - p < 8:
                return fail(s, TRUNCATED, p)
            value = load64(p)
            p += 8
            if value == 0 and field.flags & FIELD_IMPLICIT:
                s.loose = 1
            if field.op == OP_DOUBLE and is_odd_double(value):
                s.loose = 1
            slot[0] = value
        elif field.op <= OP_FLOAT:
            if end - p < 4:
                return fail(s, TRUNCATED, p)
            value = load32(p)
            p += 4
            if value == 0 and field.flags & FIELD_IMPLICIT:
                s.loose = 1
            if field.op == OP_FLOAT and is_odd_float(<uint32_t>value):
                s.loose = 1
            slot[0] = value
        elif field.op <= OP_BYTES:
            p = take_length(s, p, end, &length)
            if p == NULL:
                return NULL
            slot[0] = bytes_slot(p - s.base, length)
            if length == 0 and field.flags & FIELD_IMPLICIT:
                s.loose = 1
            if field.op != OP_BYTES and not is_ascii(p, p + length, end) and not is_utf8(p, p + length):
                if field.op == OP_STRING:
                    return fail(s, BAD_UTF8, p)
                s.loose = 1
                slot[0] = mended_text(s, p, p + length)
            p += length
        else:
            # A failure in there takes back what the present messages left.
            row[0] |= present
            present = 0
            p = parse_nested(s, node, field, start, p, end, row, slot, depth, &last, odd)
            if p == NULL:
                return NULL
    row[0] |= present
    if group:
        return fail(s, BAD_GROUP, end)
    if node.flags & NODE_ENTRY and not is_whole_entry(s, node, row):
        s.loose = 1
    return end


cdef inline const uint8_t* parse_nested(
    Scratch* s, const Node* node, const Field* field, const uint8_t* start, const uint8_t* p, const uint8_t* end,
    uint64_t* row, uint64_t* slot, int depth, int* last, int odd
) noexcept nogil:
    # A message, group or map entry from after its tag; a singular message's columns are in its parent's row.
    cdef const Node* inner = &s.nodes[field.node]
    cdef uint64_t* inner_row = slot if field.flags & FIELD_LIST else row
    cdef const uint8_t* after
    cdef const uint8_t* content_end = NULL
    cdef uint32_t length = 0
    cdef uint32_t group = 0
    cdef int loose = s.loose
    if depth == 0:
        return fail(s, TOO_DEEP, start)
    if field.op == OP_GROUP:
        group = field.tag >> 3
        length = <uint32_t>(end - p)
    else:
        p = take_length(s, p, end, &length)
        if p == NULL:
            return NULL
    if inner.flags & NODE_CUT:
        after = check_message(s, inner, p, p + length, depth - 1, group, &content_end)
        if after == NULL or not add_piece(s, inner_row + inner.unknown, bytes_slot(p - s.base, content_end - p)):
            return NULL
        if group and after - content_end != field.tag_size:
            s.loose = 1
        return after
    if field.op == OP_MAP:
        return parse_entry(s, node, field, start, p, p + length, row, slot, depth, last, odd, loose)
    after = parse_message(s, inner, p, p + length, inner_row, depth - 1, group)
    return after


cdef const uint8_t* parse_entry(
    Scratch* s, const Node* node, const Field* field, const uint8_t* start, const uint8_t* p, const uint8_t* end,
    uint64_t* row, uint64_t* entry_row, int depth, int* last, int odd, int loose
) noexcept nogil:
    # `loose` is how things stood before the entry.
    cdef const Node* entry = &s.nodes[field.node]
    if parse_message(s, entry, p, end, entry_row, depth - 1, 0) == NULL:
        return NULL
    if entry_row[entry.unknown] != 0:
        # As upb: an entry with anything unknown in it is an unknown field, whole.
        s.loose = loose
        drop_rows(s, field, 1)
        row[field.slot] -= 1
        last[0] = AFTER_ALL
        if not add_piece(s, row + node.unknown, bytes_slot(start - s.base, end - start)):
            return NULL
    elif odd:
        s.loose = 1
    return end


cdef const uint8_t* parse_other(
    Scratch* s, const Node* node, int found, uint32_t tag, const uint8_t* start, const uint8_t* p, const uint8_t* end,
    uint64_t* row, int depth, int* last, int odd
) noexcept nogil:
    # A field off the straight path: unknown, of a closed enum, or in the other of packed and not packed.
    cdef const Field* field = &s.fields[found]
    cdef uint32_t wire = tag & 7
    cdef uint32_t length = 0
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
            after = take_varint(s, p, end, &value)
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
    last[0] = AFTER_ALL
    return after


cdef inline uint32_t element_wire(uint8_t op) noexcept nogil:
    if op <= OP_LAST_VARINT:
        return WIRE_VARINT
    return WIRE_64 if op <= OP_DOUBLE else WIRE_32


cdef const uint8_t* parse_unpacked(
    Scratch* s, const Field* field, const uint8_t* p, const uint8_t* end, uint64_t* row
) noexcept nogil:
    # One element, by itself, of a field whose canonical form is packed.
    cdef uint64_t value = 0
    cdef const uint8_t* after
    if field.op <= OP_LAST_VARINT:
        after = take_varint(s, p, end, &value)
        if after == NULL:
            return NULL
    else:
        after = p + (8 if field.op <= OP_DOUBLE else 4)
        if end - p < after - p:
            return fail(s, TRUNCATED, p)
    if not parse_elements(s, field, p, after, 1, row):
        return NULL
    return after


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
            p = take_varint(s, p, end, &value)
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
        p = take_varint(s, p, end, &value)
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


cdef inline uint64_t enum_text(Scratch* s, int enumeration, int number) noexcept nogil:
    # The value's name, or its number in decimal digits. Zero, which is no text, when memory is out.
    cdef int found = search_enum(s, enumeration, number)
    if found >= 0:
        return s.enum_names[found]
    return digits_text(s, number)


cdef uint64_t digits_text(Scratch* s, int number) noexcept nogil:
    cdef uint8_t* out = reserve_spill(s, 24)
    cdef uint64_t start = s.spill_size
    cdef int size
    if out == NULL:
        return 0
    size = write_decimal(out, number)
    s.spill_size += size
    return spilled_slot(start, size)


cdef uint64_t mended_text(Scratch* s, const uint8_t* p, const uint8_t* end) noexcept nogil:
    # The bytes as text, U+FFFD for each ill-formed piece, as Unicode recommends.
    cdef uint8_t* first = reserve_spill(s, 3 * (end - p))
    cdef uint8_t* out = first
    cdef uint64_t start = s.spill_size
    cdef int step
    if first == NULL:
        return 0
    while p < end:
        step = utf8_step(p, end)
        if step > 0:
            memcpy(out, p, step)
            out += step
            p += step
        else:
            out[0] = 0xEF
            out[1] = 0xBF
            out[2] = 0xBD
            out += 3
            p -= step
    s.spill_size += out - first
    return spilled_slot(start, out - first)


cdef void clear_field(Scratch* s, const Field* field, uint64_t* row) noexcept nogil:
    # Takes a singular field's value back, and the rows that hang on it.
    row[field.presence >> 6] &= ~(<uint64_t>1 << (field.presence & 63))
    if field.op == OP_MESSAGE or field.op == OP_GROUP:
        clear_message(s, &s.nodes[field.node], row)
    else:
        row[field.slot] = 0


cdef void clear_message(Scratch* s, const Node* node, uint64_t* row) noexcept nogil:
    # Every row that hangs on this message is at the end of its space: nothing else was opened since.
    cdef const Field* field
    cdef int i
    row[node.unknown] = 0
    if node.flags & NODE_CUT:
        return
    for i in range(node.first_field, node.first_field + node.field_count):
        field = &s.fields[i]
        if field.oneof >= 0:
            row[field.oneof] = 0
        if field.flags & FIELD_LIST:
            drop_rows(s, field, row[field.slot])
            row[field.slot] = 0
        elif row[field.presence >> 6] >> (field.presence & 63) & 1:
            clear_field(s, field, row)


cdef void drop_rows(Scratch* s, const Field* field, int64_t count) noexcept nogil:
    # The last rows of a list's space, and what hangs on them.
    cdef Rows* rows = &s.spaces[field.space]
    cdef int64_t i
    if count == 0:
        return
    if field.node >= 0 and s.nodes[field.node].has_lists:
        for i in range(rows.count - count, rows.count):
            clear_message(s, &s.nodes[field.node], rows.block + i * rows.stride)
    rows.count -= count
    memset(rows.block + rows.count * rows.stride, 0, count * rows.stride * 8)
