from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from schema_mapping.protobuf.kernel.scratch cimport Scratch
from schema_mapping.protobuf.kernel.tables cimport MapKeys

# A growing list of row numbers.
cdef struct RowList:
    int64_t* rows
    int64_t count
    int64_t capacity

cdef struct KeyTable:
    uint32_t* places
    int64_t capacity
    uint64_t seed

cdef bint mark_duplicates(
    Scratch* s, const MapKeys* keys, KeyTable* table, int64_t first_row, RowList* dead, uint8_t* root_flags
) noexcept nogil
cdef bint mark_equal_keys(
    Scratch* s, const uint64_t* slots, int64_t stride, int64_t count, KeyTable* table, RowList* dead
) noexcept nogil
cdef uint32_t* root_rows(Scratch* s, int space) noexcept nogil
