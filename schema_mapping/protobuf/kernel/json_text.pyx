# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Writes Struct, Value and ListValue as JSON text, as protobuf itself does, and tells whether it gives the bytes back.

The bytes were checked by their types before. For odd bytes the text shows what a Protobuf reader makes of them: the
last of several kinds, the last entry of a key, the merged parts of a message. Infinities and NaN are strings, as JSON
lacks them.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from schema_mapping.protobuf.kernel.json_entries cimport bury_duplicates, collect_entries
from schema_mapping.protobuf.kernel.json_items cimport (
    BOOL_TAG, Content, Cursor, DEEPEST, FIELDS_TAG, Item, Json, LIST_TAG, NULL_TAG, NUMBER_TAG, STRING_TAG, STRUCT_TAG,
    add_part, next_item, start_of,
)
from schema_mapping.protobuf.kernel.json_numbers cimport NUMBER_ROOM, read_number, write_number
from schema_mapping.protobuf.kernel.json_strings cimport most_quoted, write_quoted
from schema_mapping.protobuf.kernel.scratch cimport reserve_spill, spilled_slot
from schema_mapping.protobuf.kernel.tables cimport NODE_LIST_VALUE, NODE_STRUCT


cdef bint json_text(Json* j, int kind, uint64_t pieces, uint64_t* slot) noexcept nogil:
    # Writes the text of the message in these pieces to the spill. Without room, returns False and sets the failure.
    cdef Content content
    cdef int64_t start = j.s.spill_size
    cdef bint fine
    content.range = 0
    content.pieces = pieces
    j.exact = True
    j.count = 0
    if kind == NODE_STRUCT:
        fine = put_struct(j, &content, DEEPEST)
    elif kind == NODE_LIST_VALUE:
        fine = put_list(j, &content, DEEPEST)
    else:
        fine = put_value(j, &content, DEEPEST)
    if fine:
        slot[0] = spilled_slot(start, j.s.spill_size - start)
    return fine


cdef inline bint put(Json* j, const char* text, int64_t size) noexcept nogil:
    cdef uint8_t* out = reserve_spill(j.s, size)
    if out == NULL:
        return False
    memcpy(out, text, size)
    j.s.spill_size += size
    return True


cdef bint put_value(Json* j, const Content* content, int depth) noexcept nogil:
    cdef Cursor c = start_of(j, content)
    cdef Content inner
    cdef Item item
    cdef uint32_t kind = 0
    cdef uint64_t value = 0
    cdef int seen = 0
    inner.range = 0
    inner.pieces = 0
    while next_item(j, &c, &item):
        seen += 1
        if item.tag == kind and (kind == STRUCT_TAG or kind == LIST_TAG):
            if not add_part(j, &inner, item.value):
                return False
        elif item.tag == STRUCT_TAG or item.tag == LIST_TAG:
            kind = item.tag
            inner.range = item.value
            inner.pieces = 0
        elif (
            item.tag == NULL_TAG or item.tag == NUMBER_TAG or item.tag == STRING_TAG or item.tag == BOOL_TAG
        ):
            kind = item.tag
            value = item.value
        else:
            j.exact = False
    if seen != 1 or (depth == 0 and kind >= STRUCT_TAG):
        j.exact = False
    if kind == NUMBER_TAG:
        return put_number(j, value)
    elif kind == STRING_TAG:
        return put_string(j, value)
    elif kind == BOOL_TAG:
        if value > 1:
            j.exact = False
        return put(j, b"true", 4) if value else put(j, b"false", 5)
    elif kind == STRUCT_TAG and depth:
        return put_struct(j, &inner, depth - 1)
    elif kind == LIST_TAG and depth:
        return put_list(j, &inner, depth - 1)
    if kind != NULL_TAG or value:
        j.exact = False
    return put(j, b"null", 4)


cdef bint put_list(Json* j, const Content* content, int depth) noexcept nogil:
    cdef Cursor c = start_of(j, content)
    cdef Content inner
    cdef Item item
    cdef bint first = True
    if not put(j, b"[", 1):
        return False
    inner.pieces = 0
    while next_item(j, &c, &item):
        if item.tag != FIELDS_TAG:
            j.exact = False
            continue
        if not first and not put(j, b",", 1):
            return False
        first = False
        inner.range = item.value
        if not put_value(j, &inner, depth):
            return False
    return put(j, b"]", 1)


cdef bint put_struct(Json* j, const Content* content, int depth) noexcept nogil:
    cdef int64_t opened = j.count
    cdef int64_t closed, i
    cdef Content value
    cdef bint first = True
    if not collect_entries(j, content) or not bury_duplicates(j, opened) or not put(j, b"{", 1):
        return False
    closed = j.count
    for i in range(opened, closed):
        if j.entries[i].dead:
            continue
        value = j.entries[i].value
        if not first and not put(j, b",", 1):
            return False
        first = False
        if not put_string(j, j.entries[i].key) or not put(j, b":", 1) or not put_value(j, &value, depth):
            return False
    j.count = opened
    return put(j, b"}", 1)


cdef bint put_number(Json* j, uint64_t bits) noexcept nogil:
    cdef uint64_t size = bits & <uint64_t>0x7FFFFFFFFFFFFFFF
    cdef uint64_t again = 0
    cdef uint8_t* out
    cdef int written
    if size >= <uint64_t>0x7FF0000000000000:
        j.exact = False
        if size > <uint64_t>0x7FF0000000000000:
            return put(j, b'"NaN"', 5)
        return put(j, b'"-Infinity"', 11) if bits != size else put(j, b'"Infinity"', 10)
    out = reserve_spill(j.s, NUMBER_ROOM)
    if out == NULL:
        return False
    written = write_number(out, bits)
    if not read_number(out, written, &again) or again != bits:
        j.exact = False
    j.s.spill_size += written
    return True


cdef bint put_string(Json* j, uint64_t text) noexcept nogil:
    cdef const uint8_t* p = j.s.base + <uint32_t>(text >> 32)
    cdef const uint8_t* end = p + <uint32_t>text
    cdef uint8_t* out = reserve_spill(j.s, most_quoted(p, end))
    if out == NULL:
        return False
    j.s.spill_size += write_quoted(out, p, end) - out
    return True
