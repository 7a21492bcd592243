from libc.stdint cimport int64_t, uint8_t

from schema_mapping.protobuf.kernel.json_items cimport Json
from schema_mapping.protobuf.kernel.scratch cimport Scratch
from schema_mapping.protobuf.kernel.tables cimport Native

cdef bint settle_native(Scratch* s, const Native* native, Json* json, uint8_t* root_flags) noexcept nogil
cdef void split_timestamp(int64_t micros, int64_t* seconds, int64_t* nanos) noexcept nogil
cdef void split_duration(int64_t micros, int64_t* seconds, int64_t* nanos) noexcept nogil
