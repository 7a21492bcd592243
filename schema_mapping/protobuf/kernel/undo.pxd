from libc.stdint cimport int64_t, uint64_t

from schema_mapping.protobuf.kernel.scratch cimport Scratch
from schema_mapping.protobuf.kernel.tables cimport Field, Node

cdef void clear_field(Scratch* s, const Field* field, uint64_t* row) noexcept nogil
cdef void clear_message(Scratch* s, const Node* node, uint64_t* row) noexcept nogil
cdef void drop_rows(Scratch* s, const Field* field, int64_t count) noexcept nogil
