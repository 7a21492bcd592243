# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The hot loop of decoding: parses a message's bytes to slots, and tells whether a canonical writer wrote them.

Canonical means: fields in ascending number (those without a column too), each once; the shortest varints; no implicit
defaults; one packed run; map entries with key and value; unknown fields last. The first deviation sets `loose`, and the
value is then kept raw, too.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from schema_mapping.kernel.octets cimport is_ascii, load32, load64
from schema_mapping.protobuf.kernel.check cimport check_message, is_utf8, read_tag, search_field
from schema_mapping.protobuf.kernel.detours cimport AFTER_ALL, enter_oneof, parse_other
from schema_mapping.protobuf.kernel.packed cimport parse_packed
from schema_mapping.protobuf.kernel.scratch cimport (
    BAD_GROUP, BAD_UTF8, Scratch, TOO_DEEP, TRUNCATED, add_piece, append_row, bytes_slot, fail,
)
from schema_mapping.protobuf.kernel.tables cimport (
    FIELD_IMPLICIT, FIELD_LIST, FIELD_MANY, FIELD_PACKED, Field, NODE_CUT, NODE_ENTRY, Node, OP_BYTES, OP_DOUBLE,
    OP_FLOAT, OP_GROUP, OP_LAST_VARINT, OP_MAP, OP_OPEN_ENUM, OP_STRING, WIRE_END,
)
from schema_mapping.protobuf.kernel.texts cimport enum_text, mended_text
from schema_mapping.protobuf.kernel.undo cimport drop_rows
from schema_mapping.protobuf.kernel.values cimport is_odd_double, is_odd_float, shaped, take_length, take_varint


cdef inline bint is_whole_entry(Scratch* s, const Node* entry, const uint64_t* row) noexcept nogil:
    # Whether key and value are both there. Their order, and that each came once, is checked elsewhere.
    cdef int key = s.fields[entry.first_field].presence
    cdef int value = s.fields[entry.first_field + 1].presence
    return (row[key >> 6] >> (key & 63)) & (row[value >> 6] >> (value & 63)) & 1


cdef const uint8_t* parse_message(
    Scratch* s, const Node* node, const uint8_t* p, const uint8_t* end, uint64_t* row, int depth, uint32_t group
) noexcept nogil:
    # For a group, `end` is the end of the surrounding message, and the result is the position after the end tag.
    cdef const Field* fields = s.fields
    cdef const int32_t* lookup = s.lookup + node.lookup
    cdef uint32_t dense = node.dense
    cdef const Field* field
    cdef const uint8_t* start
    cdef uint64_t* slot
    cdef uint64_t value = 0
    cdef int64_t length = 0
    cdef uint32_t tag, flags, op
    cdef int found
    cdef int last = -1
    cdef int odd                # the tag is not minimal, or the field comes too late
    cdef int loose = 0          # for this message's own fields
    cdef int mark               # passed on by address, as the next is, so that the others needn't be
    cdef uint32_t long_tag = 0
    cdef uint64_t present = 0   # bits for the first word of the row
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
                mark = 0
                p = read_tag(s, start, end, &long_tag, &mark)
                if p == NULL:
                    return NULL
                tag = long_tag
                odd = mark
        found = lookup[tag >> 3] if (tag >> 3) < dense else search_field(s, node, tag >> 3)
        field = &fields[found]
        if field.match != tag:
            row[0] |= present
            present = 0
            if (tag & 7) == WIRE_END:
                if group == 0 or tag >> 3 != group:
                    return fail(s, BAD_GROUP, start)
                s.loose |= odd | loose
                return p
            mark = last
            p = parse_other(s, node, found, tag, start, p, end, row, depth, &mark, odd)
            if p == NULL:
                return NULL
            last = mark
            continue
        flags = field.flags
        op = field.op
        if found <= last and not (found == last and flags & FIELD_MANY):
            odd = 1
        last = found
        if op != OP_MAP:
            loose |= odd
        if flags & (FIELD_LIST | FIELD_PACKED):
            if flags & FIELD_PACKED:
                p = take_length(s, p, end, &length)
                if p == NULL or not parse_packed(s, field, p, p + length, row):
                    return NULL
                p += length
                continue
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
        if op <= OP_LAST_VARINT:
            p = take_varint(s, p, end, &value, &loose)
            if p == NULL:
                return NULL
            value = shaped(op, value, &loose)
            if value == 0:
                loose |= flags & FIELD_IMPLICIT
            if op == OP_OPEN_ENUM:
                value = enum_text(s, field.enumeration, <int32_t>value)
            slot[0] = value
        elif op <= OP_DOUBLE:
            if end - p < 8:
                return fail(s, TRUNCATED, p)
            value = load64(p)
            p += 8
            if value == 0:
                loose |= flags & FIELD_IMPLICIT
            if op == OP_DOUBLE:
                loose |= is_odd_double(value)
            slot[0] = value
        elif op <= OP_FLOAT:
            if end - p < 4:
                return fail(s, TRUNCATED, p)
            value = load32(p)
            p += 4
            if value == 0:
                loose |= flags & FIELD_IMPLICIT
            if op == OP_FLOAT:
                loose |= is_odd_float(<uint32_t>value)
            slot[0] = value
        elif op <= OP_BYTES:
            p = take_length(s, p, end, &length)
            if p == NULL:
                return NULL
            if length == 0:
                loose |= flags & FIELD_IMPLICIT
            slot[0] = bytes_slot(p - s.base, length)
            if op != OP_BYTES and not is_ascii(p, length, s.limit) and not is_utf8(p, p + length):
                if op == OP_STRING:
                    return fail(s, BAD_UTF8, p)
                loose = 1
                slot[0] = mended_text(s, p, p + length)
            p += length
        else:
            # After a failure in there, what the present messages left is undone.
            row[0] |= present
            present = 0
            if depth == 0:
                return fail(s, TOO_DEEP, start)
            if op == OP_GROUP or op == OP_MAP or s.nodes[field.node].flags & NODE_CUT:
                mark = last
                p = parse_nested(s, node, field, start, p, end, row, slot, depth - 1, &mark, odd)
                if p == NULL:
                    return NULL
                last = mark
                continue
            p = take_length(s, p, end, &length)
            if p == NULL:
                return NULL
            if not flags & FIELD_LIST:
                slot = row
            p = parse_message(s, &s.nodes[field.node], p, p + length, slot, depth - 1, 0)
            if p == NULL:
                return NULL
    row[0] |= present
    s.loose |= loose
    if group:
        return fail(s, BAD_GROUP, end)
    if node.flags & NODE_ENTRY and not is_whole_entry(s, node, row):
        s.loose = 1
    return end


cdef const uint8_t* parse_nested(
    Scratch* s, const Node* node, const Field* field, const uint8_t* start, const uint8_t* p, const uint8_t* end,
    uint64_t* row, uint64_t* slot, int depth, int* last, int odd
) noexcept nogil:
    # Parses a group, a map entry or a message without columns, from after its tag. A singular one's columns are in its
    # parent's row.
    cdef const Node* inner = &s.nodes[field.node]
    cdef uint64_t* inner_row = slot if field.flags & FIELD_LIST else row
    cdef const uint8_t* after
    cdef const uint8_t* content_end = NULL
    cdef int64_t length = 0
    cdef uint32_t group = 0
    cdef int loose = s.loose
    if field.op == OP_GROUP:
        group = field.tag >> 3
        length = end - p
    else:
        p = take_length(s, p, end, &length)
        if p == NULL:
            return NULL
    if inner.flags & NODE_CUT:
        after = check_message(s, inner, p, p + length, depth, group, &content_end)
        if after == NULL or not add_piece(s, inner_row + inner.unknown, bytes_slot(p - s.base, content_end - p)):
            return NULL
        if group and after - content_end != field.tag_size:
            s.loose = 1
        return after
    if field.op == OP_MAP:
        return parse_entry(s, node, field, start, p, p + length, row, slot, depth, last, odd, loose)
    return parse_message(s, inner, p, p + length, inner_row, depth, group)


cdef const uint8_t* parse_entry(
    Scratch* s, const Node* node, const Field* field, const uint8_t* start, const uint8_t* p, const uint8_t* end,
    uint64_t* row, uint64_t* entry_row, int depth, int* last, int odd, int loose
) noexcept nogil:
    # `loose` is its value before the entry.
    cdef const Node* entry = &s.nodes[field.node]
    if parse_message(s, entry, p, end, entry_row, depth, 0) == NULL:
        return NULL
    if entry_row[entry.unknown] != 0:
        # As in upb, an entry with an unknown field is itself an unknown field.
        s.loose = loose
        drop_rows(s, field, 1)
        row[field.slot] -= 1
        last[0] = AFTER_ALL
        if not add_piece(s, row + node.unknown, bytes_slot(start - s.base, end - start)):
            return NULL
    elif odd:
        s.loose = 1
    return end
