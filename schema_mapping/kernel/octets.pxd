# Reads and checks bytes in place: little-endian numbers, UTF-8, and decimal digits.

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy


# Writes decimal digits, at most 20 bytes, and returns how many.
cdef inline int write_decimal(uint8_t* out, int64_t value) noexcept nogil:
    cdef uint8_t digits[24]
    cdef uint64_t rest = 0 - <uint64_t>value if value < 0 else <uint64_t>value
    cdef int size = 0
    cdef int i
    while size == 0 or rest:
        digits[size] = 48 + <uint8_t>(rest % 10)
        rest //= 10
        size += 1
    if value < 0:
        digits[size] = 45
        size += 1
    for i in range(size):
        out[i] = digits[size - 1 - i]
    return size


cdef inline uint64_t load64(const uint8_t* p) noexcept nogil:
    cdef uint64_t value
    memcpy(&value, p, 8)
    return value


cdef inline uint32_t load32(const uint8_t* p) noexcept nogil:
    cdef uint32_t value
    memcpy(&value, p, 4)
    return value


# Length of the well-formed UTF-8 character at p (1 to 4), or minus the length of the ill-formed piece there that
# one U+FFFD stands for (Unicode, "maximal subpart").
cdef inline int utf8_step(const uint8_t* p, const uint8_t* end) noexcept nogil:
    cdef uint8_t lead = p[0]
    cdef uint8_t low = 0x80
    cdef uint8_t high = 0xBF
    cdef int need, i
    if lead < 0x80:
        return 1
    if lead < 0xC2 or lead > 0xF4:
        return -1
    if lead < 0xE0:
        need = 1
    elif lead < 0xF0:
        need = 2
        if lead == 0xE0:
            low = 0xA0
        elif lead == 0xED:
            high = 0x9F
    else:
        need = 3
        if lead == 0xF0:
            low = 0x90
        elif lead == 0xF4:
            high = 0x8F
    for i in range(1, need + 1):
        if p + i >= end or p[i] < low or p[i] > high:
            return -i
        low = 0x80
        high = 0xBF
    return need + 1


cdef extern from *:
    """
    static const uint8_t archiver_high_bits[32] = {
        0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
    };
    """
    const uint8_t* HIGH_BITS "archiver_high_bits"


# Bytes may be read up to `limit`.
cdef inline bint is_ascii(const uint8_t* p, int64_t length, const uint8_t* limit) noexcept nogil:
    cdef uint64_t high = 0
    cdef const uint8_t* end = p + length
    if length <= 16 and limit - p >= 16:
        # Bytes after the text are masked out.
        high = load64(p) & load64(HIGH_BITS + 16 - length)
        return not (high | load64(p + 8) & load64(HIGH_BITS + 24 - length))
    if length < 8:
        while p < end:
            high |= p[0]
            p += 1
        return high < 0x80
    while end - p >= 32:
        high |= load64(p) | load64(p + 8) | load64(p + 16) | load64(p + 24)
        p += 32
    while end - p >= 8:
        high |= load64(p)
        p += 8
    return not ((high | load64(end - 8)) & <uint64_t>0x8080808080808080)


cdef inline uint32_t hash_text(const uint8_t* text, int64_t size, uint64_t seed) noexcept nogil:
    cdef uint64_t hash = seed
    cdef int64_t i
    for i in range(size):
        hash = (hash ^ text[i]) * <uint64_t>0x100000001B3
    return <uint32_t>(hash ^ (hash >> 32))
