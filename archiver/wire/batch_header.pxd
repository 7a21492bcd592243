"""What the kernels of this package share: the header of a batch as a struct, and the protocol's integers."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t


cdef packed struct Header:
    int64_t position
    int64_t size
    int64_t base_offset
    int64_t last_offset
    int64_t base_timestamp
    int64_t max_timestamp
    int64_t producer_id
    uint32_t crc
    int32_t leader_epoch
    int32_t attributes
    int32_t producer_epoch
    int32_t base_sequence
    int32_t count


cdef inline bint varint(const uint8_t* at, int64_t* pos, int64_t end, int32_t* value) noexcept nogil:
    """Read a zigzag varint of at most 5 bytes; False where it is longer or runs past `end`."""
    cdef uint32_t bits = 0
    cdef int shift = 0
    cdef uint8_t octet
    while shift < 35 and pos[0] < end:
        octet = at[pos[0]]
        pos[0] += 1
        bits |= <uint32_t>(octet & 0x7F) << shift
        if octet < 0x80:
            value[0] = <int32_t>((bits >> 1) ^ (0 - (bits & 1)))
            return True
        shift += 7
    return False


cdef inline bint varlong(const uint8_t* at, int64_t* pos, int64_t end, int64_t* value) noexcept nogil:
    """Read a zigzag varint of at most 10 bytes; False where it is longer or runs past `end`."""
    cdef uint64_t bits = 0
    cdef int shift = 0
    cdef uint8_t octet
    while shift < 70 and pos[0] < end:
        octet = at[pos[0]]
        pos[0] += 1
        bits |= <uint64_t>(octet & 0x7F) << shift
        if octet < 0x80:
            value[0] = <int64_t>((bits >> 1) ^ (0 - (bits & 1)))
            return True
        shift += 7
    return False
