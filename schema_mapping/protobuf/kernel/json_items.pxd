# Fields of the messages that become JSON, read one after the other from wherever they lie.

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from schema_mapping.protobuf.kernel.duplicates cimport KeyTable, RowList
from schema_mapping.protobuf.kernel.scratch cimport Scratch, add_piece

cdef enum:
    DEEPEST = 100       # messages in each other, as for all parsing

cdef enum Tag:
    FIELDS_TAG = 0x0A       # Struct.fields, ListValue.values and an entry's key
    ENTRY_VALUE_TAG = 0x12
    NULL_TAG = 0x08
    NUMBER_TAG = 0x11
    STRING_TAG = 0x1A
    BOOL_TAG = 0x20
    STRUCT_TAG = 0x2A
    LIST_TAG = 0x32

# The content of a message: one range, or the pieces of a message that came in parts (both as slots hold them).
cdef struct Content:
    uint64_t range
    uint64_t pieces

# One of a Struct's, read but not yet written.
cdef struct Entry:
    uint64_t key
    Content value
    uint64_t dead           # its key comes again

# What the making of texts needs again and again; entries are those of the Structs that are open.
cdef struct Json:
    Scratch* s
    Entry* entries
    int64_t count
    int64_t capacity
    KeyTable* table
    RowList dead
    bint exact              # so far, the text gives back the very bytes

# Where in a message the next field is.
cdef struct Cursor:
    const uint8_t* p
    const uint8_t* end
    uint64_t piece          # the next, counted from 1, or 0

# A field of a message, of whatever wire type.
cdef struct Item:
    uint32_t tag
    uint64_t value          # a number, or the range of what has a length

cdef bint next_item(Json* j, Cursor* c, Item* item) noexcept nogil


cdef inline Cursor start_of(Json* j, const Content* content) noexcept nogil:
    cdef Cursor c
    c.p = j.s.base + <uint32_t>(content.range >> 32)
    c.end = c.p + <uint32_t>content.range
    c.piece = content.pieces >> 32
    return c


cdef inline bint add_part(Json* j, Content* content, uint64_t part) noexcept nogil:
    # One more part of a message that is already there.
    j.exact = False
    if content.range != 0:
        if not add_piece(j.s, &content.pieces, content.range):
            return False
        content.range = 0
    return add_piece(j.s, &content.pieces, part)
