# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, nonecheck=False
"""Walks over the headers of record batches (format v2) and outer messages (v0, v1), without touching their records.

No checksum covers offsets and lengths, so the walk checks that batches follow one another and lie inside the bytes. It
ends at a batch that is cut off, as the last one of a Fetch response may be.
"""

from libc.stdint cimport INT32_MAX, INT64_MAX, int32_t, int64_t, uint8_t, uint64_t

from archiver.wire.batch_header cimport Header, be32, be64, varint, varlong

import numpy as np

from archiver.errors import CorruptBatch

HEADER_BYTES = 61
"""The size of a batch's header; its records follow."""

CHECKSUM_START = 21
"""The position in a batch from which its CRC-32C covers all bytes up to its end."""

MESSAGE_CHECKSUM_START = 16
"""The position in an outer message from which its CRC-32 covers all bytes up to its end."""

HEADER = np.dtype([
    ("position", "i8"), ("size", "i8"), ("base_offset", "i8"), ("last_offset", "i8"), ("base_timestamp", "i8"),
    ("max_timestamp", "i8"), ("producer_id", "i8"), ("crc", "u4"), ("leader_epoch", "i4"), ("attributes", "i4"),
    ("producer_epoch", "i4"), ("base_sequence", "i4"), ("count", "i4"), ("magic", "i4"),
])
"""One batch: its `position` and `size` in the bytes, then the fields of its header. Its last offset is absolute.

For an outer message (`magic` 0 and 1), both timestamps are its own (-1 in v0), `count` is 1, or -1 if it wraps a
compressed set, and fields that these formats lack are -1."""

cdef enum:
    _HEADER_BYTES = 61
    _LENGTH_END = 12        # the length field counts the bytes after itself
    _MAGIC_END = 17
    _SHORTEST_V0 = 14       # checksum, magic, attributes, and the lengths of key and value
    _SHORTEST_V1 = 22       # and the time
    _CODEC = 0b111
    _MESSAGE_BITS = 0b1111  # the bits of the attributes with a meaning in v1: codec and timestamp type
    _FIRST_ROOM = 64
    _FEW = 1024             # walking over fewer headers takes less time than releasing the interpreter's lock

cdef enum Stop:
    AT_END                  # the end of the bytes, or a batch that is cut off
    AT_NEXT_RANGE
    AT_ROOM_END             # no room for more headers
    AT_WRAPPER              # its header lacks only the first offset
    AT_BAD_MAGIC
    AT_BAD_LENGTH
    AT_BAD_OFFSETS

_REASONS = {
    AT_BAD_MAGIC: "its format does not exist",
    AT_BAD_LENGTH: "it is shorter than its own header",
    AT_BAD_OFFSETS: "its offsets do not follow those of the batch before, or fall",
}

cdef struct Progress:
    int64_t position
    int64_t previous        # the last offset of the previous batch
    int64_t found
    int64_t room


cdef inline int32_t _be16(const uint8_t* at) noexcept nogil:
    cdef int32_t value = (<int32_t>at[0] << 8) | at[1]
    return value - 65536 if value >= 32768 else value


cdef void _fill(Header* header, const uint8_t* at) noexcept nogil:
    header.leader_epoch = <int32_t>be32(at + 12)
    header.crc = be32(at + 17)
    header.attributes = _be16(at + 21)
    header.base_timestamp = <int64_t>be64(at + 27)
    header.max_timestamp = <int64_t>be64(at + 35)
    header.producer_id = <int64_t>be64(at + 43)
    header.producer_epoch = _be16(at + 51)
    header.base_sequence = <int32_t>be32(at + 53)
    header.count = <int32_t>be32(at + 57)


cdef void _fill_message(Header* header, const uint8_t* at) noexcept nogil:
    header.crc = be32(at + 12)
    header.attributes = at[17] & (_MESSAGE_BITS if header.magic else _CODEC)
    header.base_timestamp = header.max_timestamp = <int64_t>be64(at + 18) if header.magic else -1
    header.leader_epoch = header.producer_epoch = header.base_sequence = -1
    header.producer_id = -1
    header.count = -1 if header.attributes & _CODEC else 1


cdef inline int64_t _shortest(uint8_t magic) noexcept nogil:
    """The smallest valid length field of a batch."""
    if magic == 2:
        return _HEADER_BYTES - _LENGTH_END
    return _SHORTEST_V1 if magic else _SHORTEST_V0


cdef Stop _walk(const uint8_t* data, int64_t size, int64_t end_offset, Header* out, Progress* p) noexcept nogil:
    """Walk from batch to batch and write their headers."""
    cdef int64_t length, base, last
    cdef const uint8_t* at
    cdef Header* header
    while size - p.position >= _MAGIC_END:
        at = data + p.position
        if at[16] > 2:
            return AT_BAD_MAGIC
        length = <int32_t>be32(at + 8)
        if length < _shortest(at[16]):
            return AT_BAD_LENGTH
        if length > size - p.position - _LENGTH_END:
            return AT_END
        base = last = <int64_t>be64(at)
        if at[16] == 2:
            last = <int64_t>(<uint64_t>base + <uint64_t><int64_t><int32_t>be32(at + 23))
        if base <= p.previous or last < base or last == INT64_MAX:
            return AT_BAD_OFFSETS
        if p.found == p.room:
            return AT_ROOM_END
        header = out + p.found
        header.position, header.size, header.magic = p.position, length + _LENGTH_END, at[16]
        header.base_offset, header.last_offset = base, last
        if at[16] == 2:
            _fill(header, at)
        else:
            _fill_message(header, at)
            if header.count < 0:
                return AT_WRAPPER
        if base >= end_offset:
            return AT_NEXT_RANGE
        _accept(header, p)
    return AT_END


cdef inline void _accept(const Header* header, Progress* p) noexcept nogil:
    p.previous = header.last_offset
    p.position += header.size
    p.found += 1


cdef class Walk:
    """A walk over `data` up to the first batch that begins at or above `end_offset`.

    `step` walks to the end, or to a wrapper, and returns True for a wrapper. The caller then gives the wrapper's first
    offset to `place`. After the walk, `headers` has the batches of the range, `next_range_seen` says whether a batch of
    the next range was seen, and `error` is None or the `CorruptBatch` to raise. Read the batches before you raise it: a
    wrong length shows only after its batch, whose checksum then says which batch is bad.
    """

    cdef const uint8_t[::1] data
    cdef Header[::1] out
    cdef object array
    cdef int64_t end_offset
    cdef Progress at
    cdef Stop stop

    def __cinit__(self, const uint8_t[::1] data, int64_t end_offset):
        self.data, self.end_offset = data, end_offset
        self.at.position = self.at.found = 0
        self.at.previous = -1
        self.array = np.empty(0, dtype=HEADER)
        self._grow(_FIRST_ROOM)

    def _grow(self, room):
        array = np.empty(room, dtype=HEADER)
        array[: self.at.found] = self.array[: self.at.found]
        self.array = self.out = array
        self.at.room = room

    def step(self):
        """Walk on. Returns True if the walk stopped at a wrapper."""
        cdef int64_t size = self.data.shape[0]
        while True:
            if size == 0:
                self.stop = AT_END
                return False
            if self.at.room <= _FEW:
                self.stop = _walk(&self.data[0], size, self.end_offset, &self.out[0], &self.at)
            else:
                with nogil:
                    self.stop = _walk(&self.data[0], size, self.end_offset, &self.out[0], &self.at)
            if self.stop != AT_ROOM_END:
                return self.stop == AT_WRAPPER
            self._grow(4 * self.at.room)

    @property
    def wrapper(self):
        """The header of the wrapper where the walk stopped. Its base offset is still its last offset."""
        return self.array[self.at.found]

    def place(self, int64_t base_offset):
        """Set the wrapper's base offset. Returns False, which ends the walk, if it is after the range or wrong."""
        cdef Header* header = &self.out[self.at.found]
        if (
            base_offset <= self.at.previous
            or base_offset > header.last_offset
            or header.last_offset - base_offset > INT32_MAX     # more than a batch may span; no checksum covers these offsets
        ):
            self.stop = AT_BAD_OFFSETS
        elif base_offset >= self.end_offset:
            self.stop = AT_NEXT_RANGE
        else:
            header.base_offset = base_offset
            _accept(header, &self.at)
            return True
        return False

    @property
    def headers(self):
        """The headers that were found, as an array of `HEADER`."""
        return self.array[: self.at.found]

    @property
    def next_range_seen(self):
        """Whether a batch at or above the end offset was seen."""
        return self.stop == AT_NEXT_RANGE

    @property
    def error(self):
        """The error of the batch after those that were found, None if there is none."""
        if self.stop not in _REASONS:
            return None
        return CorruptBatch(
            f"A batch contradicts itself: {_REASONS[self.stop]}",
            base_offset=<int64_t>be64(&self.data[self.at.position]), position=self.at.position,
        )


def control_type(const uint8_t[::1] records):
    """The type of a control batch, from its first record: 0 abort, 1 commit, or another number. -1 if it has none."""
    cdef const uint8_t* at
    cdef int64_t pos = 0, end = records.shape[0], time_delta = 0
    cdef int32_t length = 0
    if end == 0:
        return -1
    at = &records[0]
    if not varint(at, &pos, end, &length):
        return -1
    pos += 1                # attributes of a record: none are defined
    if not (varlong(at, &pos, end, &time_delta) and varint(at, &pos, end, &length) and varint(at, &pos, end, &length)):
        return -1
    return _be16(at + pos + 2) if length >= 4 and end - pos >= 4 else -1
