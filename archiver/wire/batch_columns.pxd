from libc.stdint cimport int64_t

from archiver.wire.arrow_output cimport RecordOutput
from archiver.wire.batch_header cimport Header


cdef int put_batch_columns(
    RecordOutput output, const Header[::1] headers, const int64_t[::1] kept, const int64_t[::1] rows
) except -1
