# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, nonecheck=False
"""The columns of records that are the same in all rows of a batch, written without the interpreter's lock."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memset

from archiver.wire.batch_header cimport LOG_APPEND, Header, timestamp_type

import pyarrow as pa

_POOL = pa.system_memory_pool()
_NAMES = (
    "batch_start", "batch_end", "producer_id", "append_timestamp",
    "timestamp_type", "leader_epoch", "producer_epoch", "base_sequence", "attributes",
)

cdef struct Rows:           # the columns, up to the row that is written next
    int64_t* batch_start
    int64_t* batch_end
    int64_t* producer_id
    int64_t* append_timestamp
    int32_t* timestamp_type
    int32_t* leader_epoch
    int32_t* producer_epoch
    int32_t* base_sequence
    int32_t* attributes
    uint8_t* appended       # validity of append_timestamp, all rows'
    int64_t row
    int64_t nulls


cdef inline void _longs(int64_t** column, int64_t value, int64_t rows) noexcept nogil:
    cdef int64_t row
    cdef int64_t* at = column[0]
    for row in range(rows):
        at[row] = value
    column[0] = at + rows


cdef inline void _ints(int32_t** column, int32_t value, int64_t rows) noexcept nogil:
    cdef int64_t row
    cdef int32_t* at = column[0]
    for row in range(rows):
        at[row] = value
    column[0] = at + rows


cdef void _batch(Rows* out, const Header* header, int64_t rows) noexcept nogil:
    cdef int64_t row
    cdef int32_t kind = timestamp_type(header)
    _longs(&out.batch_start, header.base_offset, rows)
    _longs(&out.batch_end, header.last_offset, rows)
    _longs(&out.producer_id, header.producer_id, rows)
    _ints(&out.timestamp_type, kind, rows)
    _ints(&out.leader_epoch, header.leader_epoch, rows)
    _ints(&out.producer_epoch, header.producer_epoch, rows)
    _ints(&out.base_sequence, header.base_sequence, rows)
    _ints(&out.attributes, header.attributes, rows)
    _longs(&out.append_timestamp, header.max_timestamp if kind == LOG_APPEND else 0, rows)
    if kind == LOG_APPEND:
        for row in range(out.row, out.row + rows):
            out.appended[row >> 3] |= <uint8_t>(1 << (row & 7))
    else:
        out.nulls += rows
    out.row += rows


def batch_columns(const Header[::1] headers, const int64_t[::1] kept, const int64_t[::1] rows):
    """The columns by name: `rows[i]` rows of the batch with header `kept[i]`, one batch after the other."""
    cdef int64_t place, total = 0
    cdef Rows out
    for place in range(rows.shape[0]):
        total += rows[place]
    bitmap = pa.allocate_buffer((total + 7) >> 3, memory_pool=_POOL)
    buffers = [pa.allocate_buffer((8 if place < 4 else 4) * total, memory_pool=_POOL) for place in range(9)]
    out.batch_start, out.batch_end = <int64_t*>_at(buffers[0]), <int64_t*>_at(buffers[1])
    out.producer_id, out.append_timestamp = <int64_t*>_at(buffers[2]), <int64_t*>_at(buffers[3])
    out.timestamp_type, out.leader_epoch = <int32_t*>_at(buffers[4]), <int32_t*>_at(buffers[5])
    out.producer_epoch, out.base_sequence = <int32_t*>_at(buffers[6]), <int32_t*>_at(buffers[7])
    out.attributes, out.appended = <int32_t*>_at(buffers[8]), _at(bitmap)
    out.row = out.nulls = 0
    with nogil:
        memset(out.appended, 0, (total + 7) >> 3)
        for place in range(kept.shape[0]):
            _batch(&out, &headers[kept[place]], rows[place])
    columns = {}
    for name, buffer in zip(_NAMES, buffers):
        valid, nulls = (bitmap, out.nulls) if name == "append_timestamp" and out.nulls else (None, 0)
        kind = pa.int64() if len(columns) < 4 else pa.int32()
        columns[name] = pa.Array.from_buffers(kind, total, [valid, buffer], null_count=nulls)
    return columns


cdef uint8_t* _at(buffer):
    return <uint8_t*><uint64_t>buffer.address
