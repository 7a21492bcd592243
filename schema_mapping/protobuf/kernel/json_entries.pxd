from libc.stdint cimport int64_t

from schema_mapping.protobuf.kernel.json_items cimport Content, Json

cdef bint collect_entries(Json* j, const Content* content) noexcept nogil
cdef bint bury_duplicates(Json* j, int64_t opened) noexcept nogil
