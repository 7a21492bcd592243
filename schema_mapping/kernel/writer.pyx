# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Growth of the buffer that encoding writes into."""

from pyarrow import allocate_buffer, system_memory_pool

from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcpy

POOL = system_memory_pool()


cdef uint8_t* grow(Writer* w, uint8_t* p, int64_t more) noexcept nogil:
    with gil:
        return grow_buffer(w, p, more)


cdef uint8_t* grow_buffer(Writer* w, uint8_t* p, int64_t more) noexcept:
    # What is written moves to the end of a larger buffer.
    cdef int64_t written = w.end - p
    cdef int64_t capacity = max((w.end - w.start) * 2, written + more)
    cdef uint8_t* start
    try:
        buffer = allocate_buffer(capacity, memory_pool=POOL)
    except MemoryError:
        w.failure = OUT_OF_MEMORY
        return NULL
    start = <uint8_t*><size_t>buffer.address
    memcpy(start + capacity - written, p, written)
    (<list>w.owner)[0] = buffer
    w.start = start
    w.end = start + capacity
    return w.end - written
