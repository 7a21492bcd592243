# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, nonecheck=False
"""Parses message sets of the formats v0 and v1 into columns: an outer message, or the compressed set inside it.

The offsets of wrapped messages are absolute in v0 and relative in v1. Times are as Java's reader reads them. There is
no Python object for each message, and any bytes give columns or `CorruptBatch`.
"""

from libc.stdint cimport INT64_MIN, int32_t, int64_t, uint8_t, uint32_t, uint64_t

from archiver.wire.batch_header cimport Header, be32, be64
from archiver.wire.record_sink cimport Columns, RecordSink, crowded, end_row, put

from archiver.errors import CorruptBatch

cdef enum:
    _CHECKSUM_AT = 12       # after offset and length; the checksum covers all bytes after itself
    _MAGIC_AT = 16
    _ATTRIBUTES_AT = 17
    _TIME_AT = 18
    _SHORTEST_V0 = 14
    _SHORTEST_V1 = 22
    _CODEC = 0b111
    _LOG_APPEND_TIME = 0b1000

cdef enum Status:
    OK
    GROW
    AT_END
    BAD_LENGTH
    BAD_MAGIC
    BAD_CHECKSUM
    BAD_NESTING
    BAD_KEY_LENGTH
    BAD_VALUE_LENGTH
    BAD_OFFSET
    NO_MESSAGE

_REASONS = {
    BAD_LENGTH: "a message is shorter than its own header",
    BAD_MAGIC: "a message's format is not that of its wrapper",
    BAD_CHECKSUM: "a message does not match its checksum",
    BAD_NESTING: "a message in a compressed set is compressed itself",
    BAD_KEY_LENGTH: "a key's length does not fit in its message",
    BAD_VALUE_LENGTH: "a value's length does not fit in its message",
    BAD_OFFSET: "a message's offset does not rise, or lies outside the set",
    NO_MESSAGE: "there is none",
}

cdef struct Set:            # a set of messages, and how far it is read
    const uint8_t* at
    int64_t size
    int64_t pos
    int64_t done
    uint8_t magic
    bint wrapped
    bint append_time
    int64_t shift           # added to an offset to make it absolute
    int64_t previous        # the previous offset
    int64_t last
    int64_t time            # of the previous message
    int64_t keep_from
    bint in_order           # the kept messages all have times, and they never fall

cdef uint32_t _TABLE[8][256]


cdef void _fill_table() noexcept:
    cdef uint32_t value
    cdef int octet, bit, place
    for octet in range(256):
        value = octet
        for bit in range(8):
            value = (value >> 1) ^ (<uint32_t>0xEDB88320 if value & 1 else 0)
        _TABLE[0][octet] = value
    for place in range(1, 8):
        for octet in range(256):
            value = _TABLE[place - 1][octet]
            _TABLE[place][octet] = (value >> 8) ^ _TABLE[0][value & 0xFF]


_fill_table()


cdef uint32_t _crc32(const uint8_t* at, int64_t size) noexcept nogil:
    """The CRC-32 of the bytes (ISO 3309), eight at a time."""
    cdef uint32_t crc = 0xFFFFFFFF
    while size >= 8:
        crc ^= at[0] | (<uint32_t>at[1] << 8) | (<uint32_t>at[2] << 16) | (<uint32_t>at[3] << 24)
        crc = (
            _TABLE[7][crc & 0xFF] ^ _TABLE[6][(crc >> 8) & 0xFF] ^ _TABLE[5][(crc >> 16) & 0xFF] ^ _TABLE[4][crc >> 24]
            ^ _TABLE[3][at[4]] ^ _TABLE[2][at[5]] ^ _TABLE[1][at[6]] ^ _TABLE[0][at[7]]
        )
        at += 8
        size -= 8
    while size > 0:
        crc = (crc >> 8) ^ _TABLE[0][(crc ^ at[0]) & 0xFF]
        at += 1
        size -= 1
    return crc ^ <uint32_t>0xFFFFFFFF


cdef Status _message_end(const Set* s, int64_t* end) noexcept nogil:
    """Find where the current message ends. A message that is cut off ends the set, as in Java's reader."""
    cdef int32_t length
    if s.size - s.pos < _CHECKSUM_AT:
        return AT_END
    length = <int32_t>be32(s.at + s.pos + 8)
    if length < _SHORTEST_V0:
        return BAD_LENGTH
    if length > s.size - s.pos - _CHECKSUM_AT:
        return AT_END
    if s.at[s.pos + _MAGIC_AT] != s.magic:
        return BAD_MAGIC
    if s.magic and length < _SHORTEST_V1:
        return BAD_LENGTH
    end[0] = s.pos + _CHECKSUM_AT + length
    return OK


cdef inline bint _sized(const uint8_t* at, int64_t* pos, int64_t end, int32_t* length) noexcept nogil:
    """Read a length and step over its bytes. False if they don't fit."""
    if end - pos[0] < 4:
        return False
    length[0] = <int32_t>be32(at + pos[0])
    pos[0] += 4
    if length[0] > end - pos[0]:
        return False
    pos[0] += max(length[0], 0)
    return True


cdef Status _message(Set* s, Columns* out) noexcept nogil:
    """Read one message. `GROW` leaves everything unchanged. After an error, nobody may read the columns."""
    cdef const uint8_t* at = s.at + s.pos
    cdef int64_t pos = s.pos + _TIME_AT + (8 if s.magic else 0), end = 0, key_end, offset
    cdef int32_t key_length = 0, value_length = 0
    cdef Status status = _message_end(s, &end)
    if status != OK:
        return status
    if s.wrapped and at[_ATTRIBUTES_AT] & _CODEC:
        return BAD_NESTING
    if _crc32(at + _MAGIC_AT, end - s.pos - _MAGIC_AT) != be32(at + _CHECKSUM_AT):
        return BAD_CHECKSUM
    if not _sized(s.at, &pos, end, &key_length):
        return BAD_KEY_LENGTH
    key_end = pos
    if not _sized(s.at, &pos, end, &value_length):
        return BAD_VALUE_LENGTH
    offset = <int64_t>(be64(at) + <uint64_t>s.shift)
    if offset <= s.previous or offset > s.last:
        return BAD_OFFSET
    if offset >= s.keep_from:
        if crowded(out, key_length, value_length, 0, 0):
            return GROW
        put(&out.key, out.rows, s.at + key_end - max(key_length, 0), key_length, end - key_end + max(key_length, 0))
        put(&out.value, out.rows, s.at + pos - max(value_length, 0), value_length, end - pos + max(value_length, 0))
        _end_message(s, out, offset, at)
    s.previous = offset
    s.pos = end
    s.done += 1
    return OK


cdef inline void _end_message(Set* s, Columns* out, int64_t offset, const uint8_t* at) noexcept nogil:
    """End the row. If the message itself has an append time, this has replaced the producer's time."""
    cdef bint has_time = s.magic != 0 and (s.wrapped or not s.append_time)
    cdef int64_t time = <int64_t>be64(at + _TIME_AT) if has_time else -1
    if time == -1 or time < s.time:
        s.in_order = False
    s.time = time
    end_row(out, offset, time, 0)


cdef Status _messages(Set* s, Columns* out) noexcept nogil:
    cdef Status status = OK
    while status == OK:
        status = _message(s, out)
    if status != AT_END:
        return status
    return OK if s.done else NO_MESSAGE


cdef Status _bounds(Set* s, int64_t* first, int64_t* last) noexcept nogil:
    cdef int64_t end = 0
    cdef Status status = _message_end(s, &end)
    first[0] = last[0] = <int64_t>be64(s.at + s.pos) if status == OK else 0
    while status == OK:
        last[0] = <int64_t>be64(s.at + s.pos)
        s.pos = end
        s.done += 1
        status = _message_end(s, &end)
    if status != AT_END:
        return status
    return OK if s.done else NO_MESSAGE


cdef void _open(Set* s, const Header* header, const uint8_t* at, int64_t size) noexcept:
    s.at, s.size = at, size
    s.pos = s.done = s.shift = 0
    s.magic = <uint8_t>header.magic
    s.wrapped = header.count < 0
    s.append_time = header.magic == 1 and header.attributes & _LOG_APPEND_TIME
    s.previous, s.last = -1, header.last_offset
    s.time, s.in_order = INT64_MIN, True


cdef int _measure(Set* s, const Header* header, int64_t* first) except -1:
    """Find the first offset of the wrapped set, its number of messages (`done`) and its `shift`."""
    cdef int64_t last = 0
    cdef Status status
    with nogil:
        status = _bounds(s, first, &last)
    if status != OK:
        raise _corrupt(status, s, header)
    # some producers leave the wrapper's offset at 0: then the messages' own offsets count
    s.shift = header.last_offset - last if s.magic and header.last_offset else 0
    first[0] += s.shift
    s.pos = 0
    return 0


def first_offset(const uint8_t[::1] messages, const Header[::1] header):
    """The first offset of the decompressed messages inside the outer message with this header."""
    cdef Set s
    cdef int64_t first = 0
    _open(&s, &header[0], &messages[0] if messages.shape[0] else NULL, messages.shape[0])
    _measure(&s, &header[0], &first)
    return first


cdef int append_messages(
    RecordSink sink, const Header* header, const uint8_t* at, int64_t size, int64_t keep_from
) except -1:
    """Add the records of an outer message from offset `keep_from` on. `at` is the message itself, or the decompressed
    set inside it.

    Returns whether all added records have times that never fall. Raises `CorruptBatch`; the sink is unusable then.
    """
    cdef Set s
    cdef Status status
    cdef int64_t first = 0, count = 1
    _open(&s, header, at, size)
    s.keep_from = keep_from
    if s.wrapped:
        _measure(&s, header, &first)
        count, s.done = s.done, 0
    sink.reserve(sink.at.rows + count, 0, 0)
    while True:
        with nogil:
            status = _messages(&s, &sink.at)
        if status == OK:
            return s.in_order
        if status != GROW:
            raise _corrupt(status, &s, header)
        _message_end(&s, &first)
        sink.reserve(sink.at.rows, 0, first - s.pos)


cdef object _corrupt(Status status, Set* s, const Header* header):
    return CorruptBatch(
        f"The messages of a set (format v{header.magic}) contradict themselves: {_REASONS[status]}",
        base_offset=header.base_offset, record=s.done, byte=s.pos,
    )
