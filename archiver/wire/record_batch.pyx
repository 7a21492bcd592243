# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, nonecheck=False
"""Parses the records of batches of format v2 into columns.

There is no Python object for each record. The loop releases the GIL and checks every bound, so any bytes give columns or
`CorruptBatch`. The caller takes care of checksums, compression, transactions, and which offsets belong to the range.
"""

from libc.stdint cimport INT64_MIN, int32_t, int64_t, uint8_t, uint64_t

from archiver.wire.batch_header cimport Header, varint, varlong
from archiver.wire.record_sink cimport Columns, RecordSink, crowded, end_row, put

from archiver.errors import CorruptBatch

cdef enum:
    _SHORTEST_RECORD = 7    # seven fields of one byte
    _SHORTEST_HEADER = 2

cdef enum Status:
    OK
    GROW
    UNEVEN
    BAD_VARINT
    BAD_RECORD_LENGTH
    BAD_KEY_LENGTH
    BAD_VALUE_LENGTH
    BAD_HEADER_COUNT
    BAD_HEADER_KEY
    BAD_HEADER_VALUE
    BAD_RECORD_END
    BAD_BATCH_END
    BAD_COUNT

_REASONS = {
    UNEVEN: "there are more records than offsets",
    BAD_VARINT: "a varint is longer than its type allows or runs past the end",
    BAD_RECORD_LENGTH: "a record's length does not fit in the batch",
    BAD_KEY_LENGTH: "a key's length does not fit in its record",
    BAD_VALUE_LENGTH: "a value's length does not fit in its record",
    BAD_HEADER_COUNT: "a record's number of headers does not fit in it",
    BAD_HEADER_KEY: "a header key's length does not fit in its record",
    BAD_HEADER_VALUE: "a header value's length does not fit in its record",
    BAD_RECORD_END: "a record has bytes after its last header",
    BAD_BATCH_END: "the batch has bytes after its last record",
    BAD_COUNT: "the batch is too short for the number of records it declares",
}

cdef struct Section:        # the records of one batch, and how far they are read
    const uint8_t* at
    int64_t size
    int64_t pos
    int32_t count
    int32_t done
    int64_t base_offset
    int64_t base_timestamp
    int64_t last_delta      # the batch's, from its header
    int64_t delta           # of the record before
    int64_t time            # of the record before
    int64_t keep_from
    bint numbered           # offsets come from the records' places, not from their deltas
    bint in_order           # the kept records all have times, and they never fall


cdef Status _headers(const uint8_t* at, int64_t* pos, int64_t end, int32_t count, Columns* out) noexcept nogil:
    """Read `count` headers, and write them if `out` isn't null."""
    cdef int32_t length = 0
    cdef int64_t row
    for row in range(count):
        if not varint(at, pos, end, &length):
            return BAD_VARINT
        if length < 0 or length > end - pos[0]:
            return BAD_HEADER_KEY
        if out != NULL:
            put(&out.name, out.headers + row, at + pos[0], length, end - pos[0])
        pos[0] += length
        if not varint(at, pos, end, &length):
            return BAD_VARINT
        if length > end - pos[0]:
            return BAD_HEADER_VALUE
        if out != NULL:
            put(&out.text, out.headers + row, at + pos[0], length, end - pos[0])
        pos[0] += max(length, 0)
    return OK


cdef Status _record(Section* s, Columns* out) noexcept nogil:
    """Read one record. `GROW` leaves everything unchanged. After an error, nobody may read the columns."""
    cdef const uint8_t* at = s.at
    cdef int64_t pos = s.pos, end, key_at, value_at, time_delta = 0
    cdef int32_t length = 0, delta = 0, key_length = 0, value_length = 0, headers = 0
    cdef Status status
    cdef bint keep
    if not varint(at, &pos, s.size, &length):
        return BAD_VARINT
    if length < _SHORTEST_RECORD - 1 or length > s.size - pos:
        return BAD_RECORD_LENGTH
    end = pos + length
    pos += 1                # attributes of a record: none are defined
    if not (varlong(at, &pos, end, &time_delta) and varint(at, &pos, end, &delta)):
        return BAD_VARINT
    if s.numbered:
        delta = s.done
    if delta <= s.delta or delta > s.last_delta:
        return UNEVEN
    if not varint(at, &pos, end, &key_length):
        return BAD_VARINT
    if key_length > end - pos:
        return BAD_KEY_LENGTH
    key_at = pos
    pos += max(key_length, 0)
    if not varint(at, &pos, end, &value_length):
        return BAD_VARINT
    if value_length > end - pos:
        return BAD_VALUE_LENGTH
    value_at = pos
    pos += max(value_length, 0)
    if not varint(at, &pos, end, &headers):
        return BAD_VARINT
    if headers < 0 or headers > (end - pos) / _SHORTEST_HEADER:
        return BAD_HEADER_COUNT
    keep = s.base_offset + delta >= s.keep_from
    if keep and crowded(out, key_length, value_length, headers, end - pos):
        return GROW
    if headers:
        status = _headers(at, &pos, end, headers, out if keep else NULL)
        if status != OK:
            return status
    if pos != end:
        return BAD_RECORD_END
    s.pos = end
    s.done += 1
    s.delta = delta
    if keep:
        put(&out.key, out.rows, at + key_at, key_length, s.size - key_at)
        put(&out.value, out.rows, at + value_at, value_length, s.size - value_at)
        _end_record(s, out, <int64_t>(<uint64_t>s.base_timestamp + <uint64_t>time_delta), headers)
    return OK


cdef inline void _end_record(Section* s, Columns* out, int64_t time, int32_t headers) noexcept nogil:
    if time == -1 or time < s.time:
        s.in_order = False
    s.time = time
    end_row(out, s.base_offset + s.delta, time, headers)


cdef Status _records(Section* s, Columns* out) noexcept nogil:
    cdef Status status
    while s.done < s.count:
        status = _record(s, out)
        if status != OK:
            return status
    return OK if s.pos == s.size else BAD_BATCH_END


cdef int append_records(
    RecordSink sink, const Header* header, const uint8_t* at, int64_t size, int64_t keep_from
) except -1:
    """Add the decompressed records of a batch from offset `keep_from` on.

    Returns whether all added records have times that never fall. If the offsets in the batch don't rise, or lie outside
    it, records get offsets by their places instead, as brokers do in compressed batches (see docs/record-batches.md).
    Raises `CorruptBatch`; the sink is unusable then. The caller keeps all batches together below 2 GiB, the limit of
    Arrow's 32-bit offsets.
    """
    cdef Columns mark
    cdef Section s
    cdef Status status
    _start(&s, header, at, size, keep_from)
    if s.count < 0 or s.count > s.size / _SHORTEST_RECORD:
        raise _corrupt(BAD_COUNT, &s)
    sink.reserve(sink.at.rows + s.count, 0, 0)
    mark = sink.at
    while True:
        with nogil:
            status = _records(&s, &sink.at)
        if status == OK:
            return s.in_order
        if status == GROW:
            _make_room(sink, &s)
        elif status == UNEVEN and not s.numbered:
            sink.cut_back(&mark)
            s.numbered = True
            _restart(&s)
        else:
            raise _corrupt(status, &s)


cdef int append_plain(
    RecordSink sink, const Header* header, const uint8_t* at, int64_t size, int64_t keep_from
) noexcept nogil:
    """Like `append_records`, if there is room and nothing is unusual. Else it returns -1 and adds nothing."""
    cdef Columns mark = sink.at
    cdef Section s
    _start(&s, header, at, size, keep_from)
    if s.count < 0 or s.count > s.size / _SHORTEST_RECORD or s.count > sink.at.rows_room - sink.at.rows:
        return -1
    if _records(&s, &sink.at) == OK:
        return s.in_order
    sink.at = mark
    return -1


cdef inline void _start(
    Section* s, const Header* header, const uint8_t* at, int64_t size, int64_t keep_from
) noexcept nogil:
    s.at, s.size, s.count, s.keep_from = at, size, header.count, keep_from
    s.base_offset, s.base_timestamp = header.base_offset, header.base_timestamp
    s.last_delta = header.last_offset - header.base_offset
    s.numbered = False
    _restart(s)


cdef inline void _restart(Section* s) noexcept nogil:
    s.pos = s.done = 0
    s.delta, s.time, s.in_order = -1, INT64_MIN, True


cdef int _make_room(RecordSink sink, Section* s) except -1:
    """Make room for the current record. None of its parts is longer than the record."""
    cdef int64_t pos = s.pos
    cdef int32_t length = 0
    varint(s.at, &pos, s.size, &length)
    sink.reserve(sink.at.rows, length // _SHORTEST_HEADER, length)
    return 0


cdef object _corrupt(Status status, Section* s):
    return CorruptBatch(
        f"The records of a batch contradict themselves: {_REASONS[status]}",
        base_offset=s.base_offset, record=s.done, byte=s.pos,
    )
