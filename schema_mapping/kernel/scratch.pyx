# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Growth of the scratch, out of the way of the loops that seldom need it."""

from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport realloc
from libc.string cimport memset


cdef bint grow_rows(Scratch* s, Rows* rows, int64_t more) noexcept nogil:
    cdef int64_t capacity = rows.capacity * 2
    cdef void* block
    if capacity < rows.count + more:
        capacity = rows.count + more
    if capacity < 64:
        capacity = 64
    block = realloc(rows.block, capacity * rows.stride * 8)
    if block == NULL:
        s.failure = NO_MEMORY
        return False
    rows.block = <uint64_t*>block
    memset(rows.block + rows.capacity * rows.stride, 0, (capacity - rows.capacity) * rows.stride * 8)
    rows.capacity = capacity
    return True
