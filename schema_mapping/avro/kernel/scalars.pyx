# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Reads and writes decimals as two's complement and uuids as text; and the bounds of times that columns hold."""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memset

cdef enum:
    WIDEST = 16         # bytes of a decimal's column
    UUID_TEXT = 36
    DASHES = 0x00842100 # bits 8, 13, 18 and 23

DAY_MICROS = <int64_t>86_400_000_000
LOWEST_MILLIS = <int64_t>LOWEST_DATE * DAY_MILLIS
HIGHEST_MILLIS = (<int64_t>HIGHEST_DATE + 1) * DAY_MILLIS - 1
LOWEST_MICROS = LOWEST_MILLIS * 1000
HIGHEST_MICROS = HIGHEST_MILLIS * 1000 + 999


cdef bint read_decimal(const uint8_t* p, int64_t size, int digits, int128* value) noexcept nogil:
    # Returns False if there are no bytes, or more digits than the column takes.
    cdef uint8_t sign
    cdef uint64_t high, low
    cdef int64_t i
    cdef int128 most = tens(digits)
    if size == 0:
        return False
    sign = 0xFF if p[0] & 0x80 else 0
    for i in range(size - WIDEST):
        if p[i] != sign:
            return False
    if size > WIDEST:
        p += size - WIDEST
        size = WIDEST
        if (p[0] ^ sign) & 0x80:
            return False
    high = low = <uint64_t>-1 if sign else 0
    for i in range(size):
        high = high << 8 | low >> 56
        low = low << 8 | p[i]
    value[0] = <int128>(<int64_t>high) * (<int128>1 << 64) + <int128>low
    return -most < value[0] < most


cdef bint is_shortest(const uint8_t* p, int64_t size) noexcept nogil:
    # Whether no shorter bytes mean the same number.
    return size == 1 or not ((p[0] == 0 and p[1] < 0x80) or (p[0] == 0xFF and p[1] >= 0x80))


cdef int write_decimal_bytes(uint8_t* out, int128 value) noexcept nogil:
    # Writes the fewest bytes, at most 16, and returns how many.
    cdef int size = 1
    cdef int128 rest = value
    while rest < -128 or rest > 127:
        rest >>= 8
        size += 1
    write_decimal_fixed(out, value, size)
    return size


cdef void write_decimal_fixed(uint8_t* out, int128 value, int64_t size) noexcept nogil:
    cdef int64_t i
    if size > WIDEST:
        memset(out, 0xFF if value < 0 else 0, size - WIDEST)
        out += size - WIDEST
        size = WIDEST
    for i in range(size - 1, -1, -1):
        out[i] = <uint8_t>(value & 0xFF)
        value >>= 8


cdef inline int digit(uint8_t letter) noexcept nogil:
    if 48 <= letter <= 57:
        return letter - 48
    return letter - 87 if 97 <= letter <= 102 else -1


cdef bint read_uuid(const uint8_t* text, uint8_t* out) noexcept nogil:
    # Reads 36 letters. Returns False if they aren't a uuid with small letters.
    cdef int i = 0
    cdef int high, low
    while i < UUID_TEXT:
        if i < 24 and DASHES >> i & 1:
            if text[i] != 45:
                return False
            i += 1
            continue
        high, low = digit(text[i]), digit(text[i + 1])
        if high < 0 or low < 0:
            return False
        out[0] = <uint8_t>(high << 4 | low)
        out += 1
        i += 2
    return True


cdef void write_uuid(uint8_t* out, const uint8_t* uuid) noexcept nogil:
    cdef const char* letters = "0123456789abcdef"
    cdef int i
    for i in range(16):
        if i == 4 or i == 6 or i == 8 or i == 10:
            out[0] = 45
            out += 1
        out[0] = <uint8_t>letters[uuid[i] >> 4]
        out[1] = <uint8_t>letters[uuid[i] & 15]
        out += 2
