"""The header of a batch as a struct, and readers of the protocol's integers, for all kernels of this package."""

# A batch of the formats v0 and v1 is an outer message: one record, or the wrapper of a compressed set of them.

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
    int32_t count           # -1 for a wrapper
    int32_t magic


cdef enum:
    NO_TYPE = -1            # the timestamp type of format v0, which has none
    CREATE = 0
    LOG_APPEND = 1
    LOG_APPEND_TIME = 0b1000    # of the attributes


cdef inline int32_t timestamp_type(const Header* header) noexcept nogil:
    """The protocol's timestamp type of a batch."""
    if header.magic == 0:
        return NO_TYPE
    return LOG_APPEND if header.attributes & LOG_APPEND_TIME else CREATE


cdef inline uint32_t be32(const uint8_t* at) noexcept nogil:
    return (<uint32_t>at[0] << 24) | (<uint32_t>at[1] << 16) | (<uint32_t>at[2] << 8) | <uint32_t>at[3]


cdef inline uint64_t be64(const uint8_t* at) noexcept nogil:
    return (<uint64_t>be32(at) << 32) | be32(at + 4)


cdef inline bint varint(const uint8_t* at, int64_t* pos, int64_t end, int32_t* value) noexcept nogil:
    """Read a zigzag varint of at most 5 bytes. False if it is longer or runs past `end`."""
    cdef uint32_t bits = 0
    cdef int shift = 0
    cdef uint8_t octet
    if pos[0] < end and at[pos[0]] < 0x80:
        bits = at[pos[0]]
        pos[0] += 1
        value[0] = <int32_t>((bits >> 1) ^ (0 - (bits & 1)))
        return True
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
    """Read a zigzag varint of at most 10 bytes. False if it is longer or runs past `end`."""
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
