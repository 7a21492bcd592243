from libc.stdint cimport int64_t, uint8_t

from archiver.wire.batch_header cimport Header
from archiver.wire.record_sink cimport RecordSink


cdef int append_records(
    RecordSink sink, const Header* header, const uint8_t* at, int64_t size, int64_t keep_from
) except -1
cdef int append_plain(
    RecordSink sink, const Header* header, const uint8_t* at, int64_t size, int64_t keep_from
) noexcept nogil
