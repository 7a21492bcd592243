# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, nonecheck=False
"""Groups the rows of record columns into batches, and makes a header for each batch from its rows."""

from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint8_t

from archiver.wire.arrow_input cimport bits, numbers
from archiver.wire.batch_header cimport LOG_APPEND, LOG_APPEND_TIME, Header

import numpy as np
import pyarrow as pa

from archiver.errors import UnencodableBatch
from archiver.wire import attributes
from archiver.wire.batch_header import HEADER
from archiver.wire.columns import NO_TIMESTAMP

cdef enum:
    _FEW = 1 << 16          # reading fewer rows takes less time than releasing the interpreter's lock

cdef int64_t _NO_TIMESTAMP = NO_TIMESTAMP
cdef int32_t _CODEC = attributes.CODEC
cdef int32_t _REWRITTEN = attributes.CODEC | attributes.LOG_APPEND_TIME | attributes.DELETE_HORIZON

cdef struct Fields:         # the columns from which headers are made
    int64_t rows
    const int64_t* timestamp
    const int64_t* batch_start
    const int64_t* batch_end
    const int32_t* timestamp_type
    const int64_t* append_timestamp
    const uint8_t* append_valid
    int64_t append_first_bit
    const int32_t* leader_epoch
    const int64_t* producer_id
    const int32_t* producer_epoch
    const int32_t* base_sequence
    const int32_t* attributes


def batches_of(records, codec):
    """Make a header (`batch_header.HEADER`) for each batch, and find where its rows begin.

    The headers' `size`, `position` and `crc` are 0. The second array has one more element at its end: the end of the
    last batch's rows. Neighbouring rows with the same `batch_start` are one batch. `codec` goes into all headers; None
    keeps each batch's own. Raises `UnencodableBatch` if a batch begins before the previous one ends, or ends before it
    begins. Raises ValueError if the columns are not those of records.
    """
    cdef Fields fields
    cdef int64_t count, wrong
    cdef int32_t wanted = -1 if codec is None else codec
    _open(&fields, records)
    if fields.rows <= _FEW:
        count = _count(&fields)
    else:
        with nogil:
            count = _count(&fields)
    headers, bounds = np.zeros(count, HEADER), np.empty(count + 1, np.int64)
    cdef Header[::1] out = headers
    cdef int64_t[::1] first = bounds
    first[count] = fields.rows
    if count:
        if fields.rows <= _FEW:
            wrong = _fill(&fields, count, wanted, &first[0], &out[0])
        else:
            with nogil:
                wrong = _fill(&fields, count, wanted, &first[0], &out[0])
        if wrong >= 0:
            raise UnencodableBatch(
                "A batch can't be written: it begins before the end of the one before, or ends before it begins",
                base_offset=out[wrong].base_offset,
            )
    return headers, bounds


cdef int _open(Fields* f, records) except -1:
    cdef int64_t rows = records.num_rows
    append_timestamp = records.column("append_timestamp")
    f.rows = rows
    f.timestamp = <const int64_t*>_longs(records, "timestamp")
    f.batch_start, f.batch_end = <const int64_t*>_longs(records, "batch_start"), <const int64_t*>_longs(records, "batch_end")
    f.timestamp_type = <const int32_t*>_ints(records, "timestamp_type")
    f.append_valid, f.append_first_bit = bits(append_timestamp), append_timestamp.offset
    f.append_timestamp = <const int64_t*>numbers(append_timestamp, rows, pa.int64(), 8, nulls=True)
    f.leader_epoch, f.producer_id = <const int32_t*>_ints(records, "leader_epoch"), <const int64_t*>_longs(records, "producer_id")
    f.producer_epoch = <const int32_t*>_ints(records, "producer_epoch")
    f.base_sequence = <const int32_t*>_ints(records, "base_sequence")
    f.attributes = <const int32_t*>_ints(records, "attributes")
    return 0


cdef uint8_t* _longs(records, name) except? NULL:
    return numbers(records.column(name), records.num_rows, pa.int64(), 8)


cdef uint8_t* _ints(records, name) except? NULL:
    return numbers(records.column(name), records.num_rows, pa.int32(), 4)


cdef int64_t _count(const Fields* f) noexcept nogil:
    cdef int64_t row, count = 1 if f.rows else 0
    for row in range(1, f.rows):
        count += f.batch_start[row] != f.batch_start[row - 1]
    return count


cdef int64_t _fill(const Fields* f, int64_t count, int32_t codec, int64_t* first, Header* out) noexcept nogil:
    """Find where batches begin, and write their headers. Returns the place of the first one with wrong borders, or -1."""
    _bounds(f, first)
    return _headers(f, count, first, codec, out)


cdef void _bounds(const Fields* f, int64_t* first) noexcept nogil:
    cdef int64_t row, place = 1
    first[0] = 0
    for row in range(1, f.rows):
        if f.batch_start[row] != f.batch_start[row - 1]:
            first[place] = row
            place += 1


cdef int64_t _headers(const Fields* f, int64_t count, const int64_t* first, int32_t codec, Header* out) noexcept nogil:
    cdef int64_t place, previous = -1
    for place in range(count):
        _fill_header(f, first[place], first[place + 1], codec, out + place)
        if (
            out[place].base_offset <= previous
            or out[place].last_offset < out[place].base_offset
            or out[place].last_offset - out[place].base_offset > INT32_MAX
        ):
            return place
        previous = out[place].last_offset
    return -1


cdef void _fill_header(const Fields* f, int64_t first, int64_t end, int32_t codec, Header* out) noexcept nogil:
    cdef bint appended = f.timestamp_type[first] == LOG_APPEND
    cdef int32_t attributes = f.attributes[first]
    cdef int32_t rest = attributes & ~_REWRITTEN
    out.magic, out.count = 2, <int32_t>(end - first)
    out.base_offset, out.last_offset = f.batch_start[first], f.batch_end[first]
    out.leader_epoch, out.producer_id = f.leader_epoch[first], f.producer_id[first]
    out.producer_epoch, out.base_sequence = f.producer_epoch[first], f.base_sequence[first]
    out.attributes = rest | (attributes & _CODEC if codec < 0 else codec) | (LOG_APPEND_TIME if appended else 0)
    out.base_timestamp = f.timestamp[first]
    out.max_timestamp = _append_time(f, first) if appended else _latest(f, first, end)


cdef inline int64_t _append_time(const Fields* f, int64_t row) noexcept nogil:
    cdef int64_t bit = f.append_first_bit + row
    if f.append_valid != NULL and not (f.append_valid[bit >> 3] >> (bit & 7)) & 1:
        return _NO_TIMESTAMP
    return f.append_timestamp[row]


cdef inline int64_t _latest(const Fields* f, int64_t first, int64_t end) noexcept nogil:
    cdef int64_t row, latest = _NO_TIMESTAMP
    for row in range(first, end):
        latest = max(latest, f.timestamp[row])
    return latest
