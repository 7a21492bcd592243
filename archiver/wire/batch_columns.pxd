"""The columns of records that have the same value in all rows of a batch."""

from libc.stdint cimport int32_t, int64_t, uint8_t

from archiver.wire.arrow_output cimport RecordOutput
from archiver.wire.batch_header cimport LOG_APPEND, Header, timestamp_type
from schema_mapping.kernel.blocks cimport Block


cdef struct Rows:           # where the columns begin, and how many rows they have
    int64_t* batch_start
    int64_t* batch_end
    int64_t* producer_id
    int64_t* append_timestamp
    int32_t* timestamp_type
    int32_t* leader_epoch
    int32_t* producer_epoch
    int32_t* base_sequence
    int32_t* attributes
    uint8_t* appended       # validity of append_timestamp, zeros after the last row
    int64_t rows
    int64_t nulls


cdef inline void longs(int64_t* at, int64_t value, int64_t rows) noexcept nogil:
    cdef int64_t row
    for row in range(rows):
        at[row] = value


cdef inline void ints(int32_t* at, int32_t value, int64_t rows) noexcept nogil:
    cdef int64_t row
    for row in range(rows):
        at[row] = value


cdef inline void put_batch(Rows* out, const Header* header, int64_t rows) noexcept nogil:
    """Add `rows` rows of a batch. The caller has made room for them."""
    cdef int64_t row, first = out.rows
    cdef int32_t kind = timestamp_type(header)
    longs(out.batch_start + first, header.base_offset, rows)
    longs(out.batch_end + first, header.last_offset, rows)
    longs(out.producer_id + first, header.producer_id, rows)
    longs(out.append_timestamp + first, header.max_timestamp if kind == LOG_APPEND else 0, rows)
    ints(out.timestamp_type + first, kind, rows)
    ints(out.leader_epoch + first, header.leader_epoch, rows)
    ints(out.producer_epoch + first, header.producer_epoch, rows)
    ints(out.base_sequence + first, header.base_sequence, rows)
    ints(out.attributes + first, header.attributes, rows)
    out.rows += rows
    if kind == LOG_APPEND:
        for row in range(first, out.rows):
            out.appended[row >> 3] |= <uint8_t>(1 << (row & 7))
    else:
        out.nulls += rows


cdef class BatchColumns:
    cdef Rows at
    cdef Block block
    cdef int64_t room
    cdef int reserve(self, int64_t rows) except -1
    cdef void _place(self) noexcept
    cdef int give(self, RecordOutput output) except -1
