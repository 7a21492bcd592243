# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Finds fields without a column in their message's unknown bytes, so that encoding can write them in their places.

Decoding puts them there in the order in which they came: that of the message's form, before all fields that are really
unknown.
"""

from libc.stdint cimport int32_t, uint8_t, uint32_t

from schema_mapping.protobuf.kernel.check cimport read_tag, search_field, skip_field
from schema_mapping.protobuf.kernel.scratch cimport Scratch
from schema_mapping.protobuf.kernel.tables cimport Node, OP_ASIDE

cdef enum:
    DEEPEST = 100


cdef const uint8_t* split_aside(
    Scratch* s, const Node* node, const int32_t* fields, const uint8_t* p, const uint8_t* end, Stretch* stretches
) noexcept nogil:
    # Finds where each of them lies, and returns where the others begin. `fields` maps positions in the order of `s` to
    # fields.
    cdef const uint8_t* after
    cdef uint32_t tag = 0
    cdef int odd = 0
    cdef int last = 0
    cdef int found, i
    for i in range(node.first_field, node.first_field + node.field_count):
        stretches[i].start = NULL
        stretches[i].end = NULL
    while p < end:
        after = read_tag(s, p, end, &tag, &odd)
        if after == NULL:
            return p
        found = search_field(s, node, tag >> 3)
        if found < last or s.fields[found].op != OP_ASIDE or s.fields[found].tag != tag:
            return p
        after = skip_field(s, p, after, end, tag, DEEPEST)
        if after == NULL:
            return p
        if found != last:
            stretches[fields[found]].start = p
        stretches[fields[found]].end = after
        last = found
        p = after
    return p
