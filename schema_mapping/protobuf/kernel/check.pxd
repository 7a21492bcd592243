from libc.stdint cimport uint8_t, uint32_t

from schema_mapping.protobuf.kernel.scratch cimport Scratch
from schema_mapping.protobuf.kernel.tables cimport Field, Node

cdef const uint8_t* read_tag(Scratch* s, const uint8_t* p, const uint8_t* end, uint32_t* tag, int* odd) noexcept nogil
cdef const uint8_t* read_long_varint(Scratch* s, const uint8_t* p, const uint8_t* end) noexcept nogil
cdef const uint8_t* read_long_length(Scratch* s, const uint8_t* p, const uint8_t* end) noexcept nogil
cdef const uint8_t* read_length(Scratch* s, const uint8_t* p, const uint8_t* end, uint32_t* length) noexcept nogil
cdef bint is_utf8(const uint8_t* p, const uint8_t* end) noexcept nogil
cdef int search_field(Scratch* s, const Node* node, uint32_t number) noexcept nogil
cdef int search_enum(Scratch* s, int enumeration, int number) noexcept nogil
cdef const uint8_t* skip_field(
    Scratch* s, const uint8_t* start, const uint8_t* p, const uint8_t* end, uint32_t tag, int depth
) noexcept nogil
cdef const uint8_t* skip_unknown(
    Scratch* s, const Node* node, const uint8_t* start, const uint8_t* p, const uint8_t* end, uint32_t tag, int depth
) noexcept nogil
cdef const uint8_t* check_message(
    Scratch* s, const Node* node, const uint8_t* p, const uint8_t* end, int depth, uint32_t group,
    const uint8_t** content_end
) noexcept nogil
