# A binary column of values to decode.

cimport cython
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t


@cython.final
cdef class ValueColumn:
    """A binary column to decode: the addresses of its Arrow buffers, the part to take, and each value's type."""

    cdef const uint8_t* validity
    cdef const void* offsets
    cdef const uint8_t* data
    cdef const int32_t* prefixes
    cdef const int16_t* writers
    cdef int64_t start
    cdef readonly int64_t length
    cdef bint large

    cdef inline bint is_null(self, int64_t i) noexcept nogil:
        if self.writers != NULL and self.writers[i] < 0:
            return True
        i += self.start
        return self.validity != NULL and not (self.validity[i >> 3] >> (i & 7)) & 1

    cdef inline int64_t offset(self, int64_t i) noexcept nogil:
        if self.large:
            return (<const int64_t*>self.offsets)[self.start + i]
        return (<const int32_t*>self.offsets)[self.start + i]
