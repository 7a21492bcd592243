from libc.stdint cimport int64_t

from schema_mapping.protobuf.kernel.columns cimport Grower, Memory


cdef class ColumnMemory:
    """The buffers of one run's columns. Their sizes are estimated from how much of the run is done."""

    cdef list blocks
    cdef int64_t values_done, values_total, bytes_done, bytes_total
    cdef Grower grower

    cdef int64_t foresee(self, int64_t size)
    cdef object cut(self, const Memory* memory, int64_t size)
