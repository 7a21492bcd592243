from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from schema_mapping.protobuf.kernel.scratch cimport Rows, Scratch
from schema_mapping.protobuf.kernel.tables cimport Output

# A growing buffer; its owner knows it by `index`.
cdef struct Memory:
    uint8_t* data
    int64_t capacity
    int64_t index

# Makes a buffer at least `size` bytes large. Returns False if memory is out.
ctypedef bint (*Grow)(void* owner, Memory* memory, int64_t size) noexcept nogil

cdef struct Grower:
    Grow grow
    void* owner

# A column without buffers has only zeros or empty bytes; if it is bits, `nulls` says whether all or none are set.
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

# The presence bits that are set in some row of a chunk, and those that are set in every row.
cdef struct Seen:
    uint64_t* some
    uint64_t* every


cdef void look_over(const Rows* rows, int head, Seen* seen) noexcept nogil
cdef Gathered gather(
    Scratch* s, const Output* output, Column* column, const Grower* grower, const Seen* seen
) noexcept nogil
