# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, nonecheck=False
"""Builds the index of decoded batches: where their rows lie, and the times for the table's partitioning."""

from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport qsort

from archiver.wire.batch_header cimport LOG_APPEND, Header, timestamp_type

import numpy as np

from archiver.wire.columns import NO_TIME, NO_TIMESTAMP, BatchIndex

cdef enum:
    _FEW = 1024             # indexing fewer batches takes less time than releasing the interpreter's lock

cdef int64_t _NO_TIME = NO_TIME
cdef int64_t _NO_TIMESTAMP = NO_TIMESTAMP


def index_batches(
    const Header[::1] headers,
    const int64_t[::1] kept,
    first_row,
    rows,
    const uint8_t[::1] in_order,
    const int64_t[::1] timestamps,
):
    """Index the batches with rows. The arrays have one element for each of them: its place in `headers` (`kept`), its
    first row, its number of rows, and whether all its rows have times that never fall. `timestamps` are the rows' in ms."""
    cdef int64_t place, longest = 0, count = kept.shape[0]
    base_offset, last_offset, append_timestamp, median_timestamp, size = np.empty((5, count), np.int64)
    cdef int64_t[::1] base = base_offset, last = last_offset, appended = append_timestamp
    cdef int64_t[::1] median = median_timestamp, sizes = size
    cdef const int64_t[::1] firsts = first_row, counts = rows
    for place in range(count):
        if not in_order[place]:
            longest = max(longest, counts[place])
    cdef int64_t[::1] scratch = np.empty(longest + 1, np.int64)
    if longest == 0 and count <= _FEW:
        _fill(headers, kept, firsts, counts, in_order, timestamps, base, last, appended, median, sizes, &scratch[0])
    else:
        with nogil:
            _fill(headers, kept, firsts, counts, in_order, timestamps, base, last, appended, median, sizes, &scratch[0])
    return BatchIndex(
        base_offset=base_offset, last_offset=last_offset, first_row=first_row, rows=rows,
        append_timestamp=append_timestamp, median_timestamp=median_timestamp, bytes=size,
    )


cdef void _fill(
    const Header[::1] headers,
    const int64_t[::1] kept,
    const int64_t[::1] firsts,
    const int64_t[::1] counts,
    const uint8_t[::1] in_order,
    const int64_t[::1] timestamps,
    int64_t[::1] base,
    int64_t[::1] last,
    int64_t[::1] appended,
    int64_t[::1] median,
    int64_t[::1] sizes,
    int64_t* scratch,
) noexcept nogil:
    cdef int64_t place
    cdef const Header* header
    for place in range(kept.shape[0]):
        header = &headers[kept[place]]
        base[place], last[place], sizes[place] = header.base_offset, header.last_offset, header.size
        appended[place] = header.max_timestamp if timestamp_type(header) == LOG_APPEND else _NO_TIME
        if in_order[place]:
            median[place] = timestamps[firsts[place] + (counts[place] - 1) // 2]
        else:
            median[place] = _lower_median(&timestamps[firsts[place]], counts[place], scratch)


cdef int64_t _lower_median(const int64_t* timestamps, int64_t rows, int64_t* scratch) noexcept nogil:
    cdef int64_t row, count = 0
    for row in range(rows):
        if timestamps[row] != _NO_TIMESTAMP:
            scratch[count] = timestamps[row]
            count += 1
    if count == 0:
        return _NO_TIME
    qsort(scratch, count, sizeof(int64_t), _compare)
    return scratch[(count - 1) // 2]


cdef int _compare(const void* left, const void* right) noexcept nogil:
    cdef int64_t a = (<const int64_t*>left)[0], b = (<const int64_t*>right)[0]
    return (a > b) - (a < b)
