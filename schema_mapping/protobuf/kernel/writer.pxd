# The writer of an encoding run: a buffer that is filled from its end, and the tables to look things up in.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcpy

from schema_mapping.protobuf.kernel.aside cimport Stretch
from schema_mapping.protobuf.kernel.json_wire cimport JsonReader
from schema_mapping.protobuf.kernel.scratch cimport Scratch
from schema_mapping.protobuf.kernel.sources cimport Source, Sources, foresee, is_null, text_place
from schema_mapping.protobuf.kernel.tables cimport Enumeration, Field, Node
from schema_mapping.protobuf.kernel.wire cimport put_varint

cdef enum:
    ROOM = 64           # more bytes than tags, a number and a length take
    AT_ONCE = 16        # short texts are copied as so many bytes at once
    NOT_A_NUMBER = 1    # failures: this one and the next five
    OUT_OF_MEMORY = 2
    NOT_JSON = 3
    NOT_A_FORM = 4
    TOO_LONG = 5
    NOT_AS_MANY = 6

cdef struct Writer:
    const Field* fields
    const Node* nodes
    const Enumeration* enums
    const uint64_t* enum_names
    const int32_t* enum_numbers
    const int32_t* name_lookup
    const uint8_t* names
    Sources sources
    const int32_t* live     # the sources' lists of live fields, or those with oneofs last
    const uint8_t* form_text
    int64_t form_size
    int64_t columns_form_size
    int node_count
    Scratch* reader         # reads the unknown bytes of rows in the current form
    const int32_t* aside_fields     # maps the reader's positions to fields
    const int32_t* places
    const int32_t* late_places
    Scratch in_order
    Scratch oneofs_last
    Stretch* aside          # for each field without a column: its place in its message's unknown bytes
    uint8_t* start
    uint8_t* end
    JsonReader json
    void* owner             # a list with one item, the buffer
    int32_t* short_starts   # where each value starts, counted from the end; one of these two is set
    int64_t* long_starts
    int failure
    int failed_field


cdef uint8_t* grow(Writer* w, uint8_t* p, int64_t more) noexcept nogil


cdef inline uint8_t* make_room(Writer* w, uint8_t* p, int64_t more) noexcept nogil:
    return p if p - w.start >= more else grow(w, p, more)


cdef inline void set_start(Writer* w, int64_t i, const uint8_t* p) noexcept nogil:
    if w.short_starts != NULL:
        w.short_starts[i] = <int32_t>(w.end - p)
    else:
        w.long_starts[i] = w.end - p


cdef inline uint8_t* put_stretch(Writer* w, uint8_t* p, const uint8_t* start, const uint8_t* end) noexcept nogil:
    if start == end:
        return p
    p = make_room(w, p, end - start + ROOM)
    if p != NULL:
        p -= end - start
        memcpy(p, start, end - start)
    return p


cdef inline uint8_t* put_bytes(Writer* w, uint8_t* p, const Source* source, int64_t i) noexcept nogil:
    # Writes only the bytes; nothing for a null.
    cdef int64_t start, length
    if is_null(source, i):
        return p
    i = text_place(source, i)
    start = source.offsets[i]
    length = source.offsets[i + 1] - start
    foresee(source.offsets + i)
    foresee(source.data + start)
    p = make_room(w, p, length + ROOM)
    if p == NULL or length == 0:
        return p
    if length <= AT_ONCE and start + length >= AT_ONCE:
        # Also copies bytes before the text; what is written later overwrites them.
        memcpy(p - AT_ONCE, source.data + start + length - AT_ONCE, AT_ONCE)
    else:
        memcpy(p - length, source.data + start, length)
    return p - length


cdef inline uint8_t* put_tag(uint8_t* p, const Field* field) noexcept nogil:
    if field.tag < 0x80:
        p[-1] = <uint8_t>field.tag
        return p - 1
    if field.tag < 0x4000:
        p[-2] = <uint8_t>(field.tag | 0x80)
        p[-1] = <uint8_t>(field.tag >> 7)
        return p - 2
    return put_varint(p, field.tag)
