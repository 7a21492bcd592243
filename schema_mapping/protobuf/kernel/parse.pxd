from libc.stdint cimport uint8_t, uint32_t, uint64_t

from schema_mapping.protobuf.kernel.scratch cimport Scratch
from schema_mapping.protobuf.kernel.tables cimport Node

cdef const uint8_t* parse_message(
    Scratch* s, const Node* node, const uint8_t* p, const uint8_t* end, uint64_t* row, int depth, uint32_t group
) noexcept nogil
