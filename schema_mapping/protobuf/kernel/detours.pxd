from libc.stdint cimport uint8_t, uint32_t, uint64_t

from schema_mapping.protobuf.kernel.scratch cimport Scratch
from schema_mapping.protobuf.kernel.tables cimport Field, Node

cdef enum:
    AFTER_ALL = 0x7FFFFFFF      # as the last field seen: every later field is then out of order

cdef void enter_oneof(Scratch* s, const Field* field, int found, uint64_t* row) noexcept nogil
cdef const uint8_t* parse_other(
    Scratch* s, const Node* node, int found, uint32_t tag, const uint8_t* start, const uint8_t* p, const uint8_t* end,
    uint64_t* row, int depth, int* last, int odd
) noexcept nogil
