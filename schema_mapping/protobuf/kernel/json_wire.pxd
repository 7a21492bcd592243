# Encodes the JSON text of a google.protobuf.Struct, Value or ListValue.

from libc.stdint cimport int64_t, uint8_t

from schema_mapping.protobuf.kernel.json_tokens cimport JsonReader

cdef const uint8_t* json_bytes(
    JsonReader* r, int kind, const uint8_t* text, int64_t size, int64_t* length
) noexcept nogil
cdef void free_reader(JsonReader* r) noexcept nogil
