# Writes the JSON text of a google.protobuf.Struct, Value or ListValue.

from libc.stdint cimport uint64_t

from schema_mapping.protobuf.kernel.json_items cimport Json

cdef bint json_text(Json* j, int kind, uint64_t pieces, uint64_t* slot) noexcept nogil
