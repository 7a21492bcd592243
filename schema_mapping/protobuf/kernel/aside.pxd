from libc.stdint cimport int32_t, uint8_t

from schema_mapping.protobuf.kernel.scratch cimport Scratch
from schema_mapping.protobuf.kernel.tables cimport Node

cdef struct Stretch:
    const uint8_t* start
    const uint8_t* end

cdef const uint8_t* split_aside(
    Scratch* s, const Node* node, const int32_t* fields, const uint8_t* p, const uint8_t* end, Stretch* stretches
) noexcept nogil
