# The JSON text of a google.protobuf.Struct, Value or ListValue.

from libc.stdint cimport int64_t, uint64_t

from schema_mapping.kernel.duplicates cimport KeyTable, RowList
from schema_mapping.kernel.scratch cimport Scratch

# The content of a message: one range, or the pieces of a message that came in parts (both as slots hold them).
cdef struct Content:
    uint64_t range
    uint64_t pieces

cdef struct Entry:
    uint64_t key
    Content value
    uint64_t dead           # its key comes again

# What the making of texts needs again and again; entries are those of the Structs that are open.
cdef struct Json:
    Scratch* s
    Entry* entries
    int64_t count
    int64_t capacity
    KeyTable* table
    RowList dead
    bint exact              # so far, the text gives back the very bytes

cdef bint json_text(Json* j, int kind, uint64_t pieces, uint64_t* slot) noexcept nogil
