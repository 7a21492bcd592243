# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""JSON text of Struct, Value and ListValue, as protobuf's own JSON, and whether it gives back the very bytes.

The bytes have been checked by their types before. Whatever a reader of Protobuf makes of odd ones is what the text
shows: the last of several kinds, the last entry of a key, messages in parts merged. Infinities and NaN, which JSON has
not, are strings.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport realloc
from libc.string cimport memcpy

from schema_mapping.kernel.check cimport skip_field
from schema_mapping.kernel.duplicates cimport mark_equal_keys
from schema_mapping.kernel.json_numbers cimport NUMBER_ROOM, read_number, write_number
from schema_mapping.kernel.scratch cimport (
    NO_MEMORY, Piece, TOO_LARGE, add_piece, bytes_slot, reserve_spill, spilled_slot,
)
from schema_mapping.kernel.tables cimport (
    NODE_LIST_VALUE, NODE_STRUCT, WIRE_32, WIRE_64, WIRE_BYTES, WIRE_VARINT,
)
from schema_mapping.kernel.wire cimport load64, read_short, read_varint

cdef enum:
    DEEPEST = 100
    SHORT_TEXT = 1 << 12

cdef enum Tag:
    FIELDS_TAG = 0x0A       # Struct.fields, ListValue.values and an entry's key
    ENTRY_VALUE_TAG = 0x12
    NULL_TAG = 0x08
    NUMBER_TAG = 0x11
    STRING_TAG = 0x1A
    BOOL_TAG = 0x20
    STRUCT_TAG = 0x2A
    LIST_TAG = 0x32

cdef struct Cursor:
    const uint8_t* p
    const uint8_t* end
    uint64_t piece          # the next, counted from 1, or 0

cdef struct Item:
    uint32_t tag
    uint64_t value          # a number, or the range of what has a length

# Bytes that stand in a JSON string as they are.
cdef uint8_t PLAIN[256]


cdef void fill_plain() noexcept:
    cdef int byte
    for byte in range(256):
        PLAIN[byte] = byte >= 0x20 and byte != 0x22 and byte != 0x5C


fill_plain()


cdef bint json_text(Json* j, int kind, uint64_t pieces, uint64_t* slot) noexcept nogil:
    # The text of the message in these pieces goes to the spill. False, with the scratch's failure, when there's no room.
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


cdef inline Cursor start_of(Json* j, const Content* content) noexcept nogil:
    cdef Cursor c
    c.p = j.s.base + <uint32_t>(content.range >> 32)
    c.end = c.p + <uint32_t>content.range
    c.piece = content.pieces >> 32
    return c


cdef bint next_item(Json* j, Cursor* c, Item* item) noexcept nogil:
    # The next field of a message, wherever its pieces lie.
    cdef const Piece* piece
    cdef const uint8_t* start
    cdef uint32_t length = 0
    cdef uint32_t wire
    cdef int loose = 0
    while c.p == c.end:
        if c.piece == 0:
            return False
        piece = &j.s.pieces[c.piece - 1]
        c.p = j.s.base + piece.start
        c.end = c.p + piece.length
        c.piece = piece.next
    start = c.p
    c.p = read_short(c.p, c.end, <uint64_t>0xFFFFFFFF, &item.tag, &loose)
    wire = item.tag & 7
    item.value = 0
    if c.p == NULL:
        pass
    elif wire == WIRE_VARINT:
        c.p = read_varint(c.p, c.end, &item.value, &loose)
    elif wire == WIRE_BYTES:
        c.p = read_short(c.p, c.end, 0x7FFFFFFF, &length, &loose)
        if c.p != NULL and length <= c.end - c.p:
            item.value = bytes_slot(c.p - j.s.base, length)
            c.p += length
        else:
            c.p = NULL
    elif wire == WIRE_64 and c.end - c.p >= 8:
        item.value = load64(c.p)
        c.p += 8
    else:
        c.p = skip_field(j.s, start, c.p, c.end, item.tag, DEEPEST)
    if loose:
        j.exact = False
    if c.p == NULL:
        # Not after the check.
        j.exact = False
        c.p = c.end
        c.piece = 0
        return False
    return True


cdef inline bint add_part(Json* j, Content* content, uint64_t part) noexcept nogil:
    # One more part of a message that is already there.
    j.exact = False
    if content.range != 0:
        if not add_piece(j.s, &content.pieces, content.range):
            return False
        content.range = 0
    return add_piece(j.s, &content.pieces, part)


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


cdef bint collect_entries(Json* j, const Content* content) noexcept nogil:
    cdef Cursor c = start_of(j, content)
    cdef Item item
    while next_item(j, &c, &item):
        if item.tag != FIELDS_TAG:
            j.exact = False
        elif not collect_entry(j, item.value):
            return False
    return True


cdef bint collect_entry(Json* j, uint64_t range) noexcept nogil:
    # As upb: an entry with anything unknown in it is an unknown field, whole.
    cdef Content content
    cdef Cursor c
    cdef Entry* entry
    cdef Item item
    cdef int seen = 0
    cdef bint has_value = False
    if j.count == j.capacity and not grow_entries(j):
        return False
    entry = &j.entries[j.count]
    entry.key = 0
    entry.value.range = 0
    entry.value.pieces = 0
    entry.dead = 0
    content.range = range
    content.pieces = 0
    c = start_of(j, &content)
    while next_item(j, &c, &item):
        if item.tag == FIELDS_TAG:
            entry.key = item.value
            if seen != 0:
                j.exact = False
        elif item.tag != ENTRY_VALUE_TAG:
            j.exact = False
            return True
        elif has_value:
            if not add_part(j, &entry.value, item.value):
                return False
        else:
            has_value = True
            entry.value.range = item.value
            if seen != 1:
                j.exact = False
        seen += 1
    if seen != 2:
        j.exact = False
    j.count += 1
    return True


cdef bint grow_entries(Json* j) noexcept nogil:
    cdef int64_t capacity = 2 * j.capacity + 64
    cdef void* grown
    if capacity * <int64_t>sizeof(Entry) > 8 * j.s.most_words:
        j.s.failure = TOO_LARGE
        return False
    grown = realloc(j.entries, capacity * sizeof(Entry))
    if grown == NULL:
        j.s.failure = NO_MEMORY
        return False
    j.entries = <Entry*>grown
    j.capacity = capacity
    return True


cdef bint bury_duplicates(Json* j, int64_t opened) noexcept nogil:
    # Of entries with one key the last lives.
    cdef int64_t i
    if j.count - opened < 2:
        return True
    j.dead.count = 0
    if not mark_equal_keys(
        j.s, &j.entries[opened].key, sizeof(Entry) // 8, j.count - opened, j.table, &j.dead
    ):
        j.s.failure = NO_MEMORY
        return False
    for i in range(j.dead.count):
        j.entries[opened + j.dead.rows[i]].dead = 1
        j.exact = False
    return True


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
    cdef const uint8_t* run
    cdef uint8_t* out = reserve_spill(j.s, most_escaped(p, end) + 2)
    cdef uint8_t* first = out
    if out == NULL:
        return False
    out[0] = b'"'
    out += 1
    while p < end:
        run = p
        while p < end and PLAIN[p[0]]:
            p += 1
        memcpy(out, run, p - run)
        out += p - run
        if p < end:
            out = put_escaped(out, p[0])
            p += 1
    out[0] = b'"'
    j.s.spill_size += out + 1 - first
    return True


cdef inline int64_t most_escaped(const uint8_t* p, const uint8_t* end) noexcept nogil:
    # No less than the bytes that the text takes; counted only where a guess would take much memory.
    cdef int64_t size = end - p
    if size < SHORT_TEXT:
        return 6 * size
    while p < end:
        size += 0 if PLAIN[p[0]] else 5
        p += 1
    return size


cdef inline uint8_t* put_escaped(uint8_t* out, uint8_t byte) noexcept nogil:
    cdef const char* digits = b"0123456789abcdef"
    cdef uint8_t short = byte
    if byte == 0x08:
        short = b"b"
    elif byte == 0x09:
        short = b"t"
    elif byte == 0x0A:
        short = b"n"
    elif byte == 0x0C:
        short = b"f"
    elif byte == 0x0D:
        short = b"r"
    out[0] = b"\\"
    if byte < 0x20 and short == byte:
        memcpy(out + 1, b"u00", 3)
        out[4] = digits[byte >> 4]
        out[5] = digits[byte & 15]
        return out + 6
    out[1] = short
    return out + 2
