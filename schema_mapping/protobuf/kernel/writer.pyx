# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Grows the buffer that encoding writes to."""

from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcpy

from schema_mapping.kernel.blocks cimport Block, new_block


cdef uint8_t* grow(Writer* w, uint8_t* p, int64_t more) noexcept nogil:
    with gil:
        return grow_buffer(w, p, more)


cdef uint8_t* grow_buffer(Writer* w, uint8_t* p, int64_t more) noexcept:
    # Moves the written bytes to the end of a larger buffer.
    cdef int64_t written = w.end - p
    cdef int64_t capacity = max((w.end - w.start) * 2, written + more)
    cdef Block block
    try:
        block = new_block(capacity)
    except MemoryError:
        w.failure = OUT_OF_MEMORY
        return NULL
    memcpy(block.data + capacity - written, p, written)
    (<list>w.owner)[0] = block
    w.start = block.data
    w.end = block.data + capacity
    return w.end - written
