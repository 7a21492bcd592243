# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Reads the fields of a message that was checked before, and tells whether a canonical writer wrote them."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from schema_mapping.kernel.octets cimport load64
from schema_mapping.protobuf.kernel.check cimport skip_field
from schema_mapping.protobuf.kernel.scratch cimport Piece, bytes_slot
from schema_mapping.protobuf.kernel.tables cimport WIRE_64, WIRE_BYTES, WIRE_VARINT
from schema_mapping.protobuf.kernel.wire cimport read_short, read_varint


cdef bint next_item(Json* j, Cursor* c, Item* item) noexcept nogil:
    # Reads the next field of a message, also across its pieces.
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
        # Can't happen after the check.
        j.exact = False
        c.p = c.end
        c.piece = 0
        return False
    return True
