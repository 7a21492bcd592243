from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from schema_mapping.kernel.scratch cimport Scratch
from schema_mapping.kernel.tables cimport Output

cdef struct Column:
    int64_t rows
    int64_t nulls
    uint8_t* bits
    int64_t bits_capacity
    uint8_t* values         # numbers or offsets
    int64_t values_capacity
    uint8_t* data
    int64_t data_size
    int64_t data_capacity

cdef enum Gathered:
    GATHERED = 0
    GATHER_NO_MEMORY = 1
    GATHER_TOO_LARGE = 2

cdef Gathered gather(Scratch* s, const Output* output, Column* column) noexcept nogil
