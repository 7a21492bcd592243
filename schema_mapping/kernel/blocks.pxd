from libc.stdint cimport int64_t, uint8_t


cdef class Block:
    """Memory that is given back when the last buffer in it is gone."""

    cdef uint8_t* data
    cdef int64_t capacity

    cdef void resize(self, int64_t size) except *


cdef Block new_block(int64_t size)
cdef Block enlarged(Block block, int64_t size)
cdef object buffer_of(Block block, int64_t start, int64_t size)
