"""The columns of records that the kernels of this package have written, ready for Arrow to take over."""

from libc.stdint cimport int64_t

from schema_mapping.kernel.arrow cimport ArrowArray
from schema_mapping.kernel.blocks cimport Block

cdef enum:
    HEADER = 14             # after the columns of `RECORDS`: the entries of `headers`, their keys and their values
    HEADER_KEY = 15
    HEADER_VALUE = 16
    RECORD = 17             # the struct of all columns
    ARRAYS = 18
    BUFFERS = 3             # the most that an array has


cdef class RecordOutput:
    cdef ArrowArray arrays[ARRAYS]
    cdef const void* buffers[ARRAYS][BUFFERS]
    cdef ArrowArray* children[ARRAYS]
    cdef ArrowArray* header_parts[2]
    cdef list blocks
    cdef int put(self, int place, int64_t rows, int buffer, Block block, int64_t start=*) except -1
    cdef int put_validity(self, int place, int64_t nulls, Block block, int64_t start=*) except -1
