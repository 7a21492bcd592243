# Reads and writes Protobuf's wire format, with all bounds checked. A reader that returns a pointer returns NULL if the
# bytes aren't valid. `loose` is set if a canonical writer would have written other bytes.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

cdef extern from *:
    int __builtin_ctzll(unsigned long long) noexcept nogil
    int __builtin_clzll(unsigned long long) noexcept nogil


cdef inline const uint8_t* read_varint(
    const uint8_t* p, const uint8_t* end, uint64_t* value, int* loose
) noexcept nogil:
    cdef uint64_t result = 0
    cdef uint64_t byte
    cdef int shift = 0
    while p < end:
        byte = p[0]
        p += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            if shift != 0 and (byte == 0 or (shift == 63 and byte > 1)):
                loose[0] = 1
            value[0] = result
            return p
        shift += 7
        if shift > 63:
            return NULL
    return NULL


# Reads a varint of at most eight bytes from a word. Returns its length, or 0 if it is longer.
cdef inline int varint_in_word(uint64_t word, uint64_t* value, int* loose) noexcept nogil:
    cdef uint64_t stops = ~word & <uint64_t>0x8080808080808080
    cdef int size
    if stops == 0:
        return 0
    size = (__builtin_ctzll(stops) >> 3) + 1
    word &= stops ^ (stops - 1)
    if size > 1 and word >> (8 * size - 8) == 0:
        loose[0] = 1
    word &= <uint64_t>0x7F7F7F7F7F7F7F7F
    word = (word & <uint64_t>0x007F007F007F007F) | ((word & <uint64_t>0x7F007F007F007F00) >> 1)
    word = (word & <uint64_t>0x00003FFF00003FFF) | ((word & <uint64_t>0x3FFF00003FFF0000) >> 2)
    value[0] = (word & <uint64_t>0x000000000FFFFFFF) | ((word & <uint64_t>0x0FFFFFFF00000000) >> 4)
    return size


# Reads a tag or length: at most five bytes, with a value of at most `most`.
cdef inline const uint8_t* read_short(
    const uint8_t* p, const uint8_t* end, uint64_t most, uint32_t* value, int* loose
) noexcept nogil:
    cdef uint64_t result = 0
    cdef uint64_t byte
    cdef int shift = 0
    while p < end and shift < 35:
        byte = p[0]
        p += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            if result > most:
                return NULL
            if shift != 0 and byte == 0:
                loose[0] = 1
            value[0] = <uint32_t>result
            return p
        shift += 7
    return NULL


# Whether a varint that couldn't be read is too short, rather than too long.
cdef inline bint is_cut_short(const uint8_t* p, const uint8_t* end, int most) noexcept nogil:
    cdef int i = 0
    while p < end and i < most:
        if p[0] < 0x80:
            return False
        p += 1
        i += 1
    return i < most


cdef inline int varint_size(uint64_t value) noexcept nogil:
    return (9 * (64 - __builtin_clzll(value | 1)) + 64) >> 6


# The `size` bytes (at most eight) of a varint, at the upper end of a word.
cdef inline uint64_t varint_word(uint64_t value, int size) noexcept nogil:
    cdef int unused = 64 - 8 * size
    value = (value & <uint64_t>0x000000000FFFFFFF) | ((value & <uint64_t>0x00FFFFFFF0000000) << 4)
    value = (value & <uint64_t>0x00003FFF00003FFF) | ((value & <uint64_t>0x0FFFC0000FFFC000) << 2)
    value = (value & <uint64_t>0x007F007F007F007F) | ((value & <uint64_t>0x3F803F803F803F80) << 1)
    return (value | <uint64_t>0x0080808080808080 >> unused) << unused


# Writes a varint before `p`, and returns its start. Needs room for ten bytes; writes eight at once.
cdef inline uint8_t* put_varint(uint8_t* p, uint64_t value) noexcept nogil:
    cdef int size
    if value < 0x80:
        p -= 1
        p[0] = <uint8_t>value
        return p
    if value >> 56:
        p -= varint_size(value)
        write_varint(p, value)
        return p
    size = varint_size(value)
    value = varint_word(value, size)
    memcpy(p - 8, &value, 8)
    return p - size


cdef inline uint8_t* write_varint(uint8_t* p, uint64_t value) noexcept nogil:
    while value >= 0x80:
        p[0] = <uint8_t>(value | 0x80)
        p += 1
        value >>= 7
    p[0] = <uint8_t>value
    return p + 1
