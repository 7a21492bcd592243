# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, nonecheck=False
"""The columns of records that are the same in all rows of a batch, written without the interpreter's lock."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memset

from archiver.wire.batch_header cimport LOG_APPEND, Header, timestamp_type
from archiver.wire.arrow_output cimport RecordOutput
from schema_mapping.kernel.blocks cimport Block, new_block

from archiver.wire.columns import RECORDS

cdef enum:
    _LONGS = 4              # the first of the columns
    _APPENDED = 3           # the last of these
    _INTS = 5

cdef int _PLACES[_LONGS + _INTS]
_PLACES = [RECORDS.get_field_index(name) for name in (
    "batch_start", "batch_end", "producer_id", "append_timestamp",
    "timestamp_type", "leader_epoch", "producer_epoch", "base_sequence", "attributes",
)]

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


cdef int put_batch_columns(
    RecordOutput output, const Header[::1] headers, const int64_t[::1] kept, const int64_t[::1] rows
) except -1:
    """Put the columns: `rows[i]` rows of the batch with header `kept[i]`, one batch after the other."""
    cdef int64_t place, start = 0, total = 0
    cdef Rows out
    for place in range(rows.shape[0]):
        total += rows[place]
    cdef Block block = new_block(_LONGS * 8 * total + _INTS * 4 * total + ((total + 7) >> 3))
    cdef int64_t* longs = <int64_t*>block.data
    cdef int32_t* ints = <int32_t*>(longs + _LONGS * total)
    out.batch_start, out.batch_end = longs, longs + total
    out.producer_id, out.append_timestamp = longs + 2 * total, longs + 3 * total
    out.timestamp_type, out.leader_epoch, out.producer_epoch = ints, ints + total, ints + 2 * total
    out.base_sequence, out.attributes = ints + 3 * total, ints + 4 * total
    out.appended = <uint8_t*>(ints + _INTS * total)
    out.row = out.nulls = 0
    with nogil:
        memset(out.appended, 0, (total + 7) >> 3)
        for place in range(kept.shape[0]):
            _batch(&out, &headers[kept[place]], rows[place])
    for place in range(_LONGS + _INTS):
        output.put(_PLACES[place], total, 1, block, start)
        start += total * (8 if place < _LONGS else 4)
    output.put_validity(_PLACES[_APPENDED], out.nulls, block, start)
    return 0
