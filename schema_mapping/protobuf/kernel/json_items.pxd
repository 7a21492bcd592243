# Reads the fields of messages that become JSON, one after the other, also if a message came in several pieces.

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from schema_mapping.protobuf.kernel.duplicates cimport KeyTable, RowList
from schema_mapping.protobuf.kernel.scratch cimport Scratch, add_piece

cdef enum:
    DEEPEST = 100       # nested messages, as for all parsing

cdef enum Tag:
    FIELDS_TAG = 0x0A       # Struct.fields, ListValue.values and an entry's key
    ENTRY_VALUE_TAG = 0x12
    NULL_TAG = 0x08
    NUMBER_TAG = 0x11
    STRING_TAG = 0x1A
    BOOL_TAG = 0x20
    STRUCT_TAG = 0x2A
    LIST_TAG = 0x32

# The content of a message: one range, or several pieces if the message came in parts (both as in slots).
cdef struct Content:
    uint64_t range
    uint64_t pieces

# An entry of a Struct that is read but not yet written.
cdef struct Entry:
    uint64_t key
    Content value
    uint64_t dead           # its key comes again later

# State for making texts. The entries are those of the Structs that are being written.
cdef struct Json:
    Scratch* s
    Entry* entries
    int64_t count
    int64_t capacity
    KeyTable* table
    RowList dead
    bint exact              # so far, the text gives back the same bytes

# The position of the next field in a message.
cdef struct Cursor:
    const uint8_t* p
    const uint8_t* end
    uint64_t piece          # the next piece, counted from 1, or 0

# A field of a message, with any wire type.
cdef struct Item:
    uint32_t tag
    uint64_t value          # a number, or the range of length-delimited bytes

cdef bint next_item(Json* j, Cursor* c, Item* item) noexcept nogil


cdef inline Cursor start_of(Json* j, const Content* content) noexcept nogil:
    cdef Cursor c
    c.p = j.s.base + <uint32_t>(content.range >> 32)
    c.end = c.p + <uint32_t>content.range
    c.piece = content.pieces >> 32
    return c


cdef inline bint add_part(Json* j, Content* content, uint64_t part) noexcept nogil:
    # Adds a part of a message that already has a part.
    j.exact = False
    if content.range != 0:
        if not add_piece(j.s, &content.pieces, content.range):
            return False
        content.range = 0
    return add_piece(j.s, &content.pieces, part)
