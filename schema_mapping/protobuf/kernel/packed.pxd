from libc.stdint cimport uint8_t, uint64_t

from schema_mapping.protobuf.kernel.scratch cimport Scratch
from schema_mapping.protobuf.kernel.tables cimport Field

cdef bint parse_packed(
    Scratch* s, const Field* field, const uint8_t* p, const uint8_t* end, uint64_t* row
) noexcept nogil
cdef const uint8_t* parse_unpacked(
    Scratch* s, const Field* field, const uint8_t* p, const uint8_t* end, uint64_t* row
) noexcept nogil
