from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from schema_mapping.protobuf.kernel.scratch cimport Rows, Scratch
from schema_mapping.protobuf.kernel.tables cimport Output

# A growing buffer; `index` tells its owner which.
cdef struct Memory:
    uint8_t* data
    int64_t capacity
    int64_t index

# Makes a buffer at least `size` bytes large, or returns False.
ctypedef bint (*Grow)(void* owner, Memory* memory, int64_t size) noexcept nogil

cdef struct Grower:
    Grow grow
    void* owner

# A column without buffers holds nothing but zeros, empty bytes or, of bits, what its `nulls` say: all or none.
cdef struct Column:
    int64_t rows
    int64_t nulls
    int64_t data_size
    Memory bits
    Memory values           # numbers or offsets
    Memory data

cdef enum Gathered:
    GATHERED = 0
    GATHER_NO_MEMORY = 1
    GATHER_TOO_LARGE = 2

# Which presence bits of a chunk's rows are set in some row, and in all.
cdef struct Seen:
    uint64_t* some
    uint64_t* every


cdef void look_over(const Rows* rows, int head, Seen* seen) noexcept nogil
cdef Gathered gather(
    Scratch* s, const Output* output, Column* column, const Grower* grower, const Seen* seen
) noexcept nogil
