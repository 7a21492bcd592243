# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""JSON strings: writes them with as few escapes as the format allows, and reads every escape."""

from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcpy

cdef enum:
    SHORT_TEXT = 1 << 12

# The bytes that need no escape in a JSON string.
cdef uint8_t PLAIN[256]


cdef void fill_plain() noexcept:
    cdef int byte
    for byte in range(256):
        PLAIN[byte] = byte >= 0x20 and byte != 0x22 and byte != 0x5C


fill_plain()


cdef int64_t most_quoted(const uint8_t* p, const uint8_t* end) noexcept nogil:
    # An upper bound of the quoted text's size. It is counted only if a guess would take much memory.
    cdef int64_t size = end - p + 2
    if size < SHORT_TEXT:
        return 6 * size
    while p < end:
        size += 0 if PLAIN[p[0]] else 5
        p += 1
    return size


cdef uint8_t* write_quoted(uint8_t* out, const uint8_t* p, const uint8_t* end) noexcept nogil:
    # Returns the end of the text.
    cdef const uint8_t* run
    out[0] = b'"'
    out += 1
    while p < end:
        run = p
        while p < end and PLAIN[p[0]]:
            p += 1
        memcpy(out, run, p - run)
        out += p - run
        if p < end:
            out = write_escaped(out, p[0])
            p += 1
    out[0] = b'"'
    return out + 1


cdef inline uint8_t* write_escaped(uint8_t* out, uint8_t byte) noexcept nogil:
    cdef const char* digits = b"0123456789abcdef"
    cdef uint8_t short = byte
    if byte == 0x08:
        short = b"b"
    elif byte == 0x09:
        short = b"t"
    elif byte == 0x0A:
        short = b"n"
    elif byte == 0x0C:
        short = b"f"
    elif byte == 0x0D:
        short = b"r"
    out[0] = b"\\"
    if byte < 0x20 and short == byte:
        memcpy(out + 1, b"u00", 3)
        out[4] = digits[byte >> 4]
        out[5] = digits[byte & 15]
        return out + 6
    out[1] = short
    return out + 2


cdef inline int hex_value(uint8_t byte) noexcept nogil:
    if 48 <= byte <= 57:
        return byte - 48
    byte |= 32
    return byte - 87 if 97 <= byte <= 102 else -1


cdef int read_hex(const uint8_t* p, const uint8_t* end) noexcept nogil:
    # Reads the four hex digits after \u; -1 if they aren't there.
    cdef int result = 0
    cdef int i, digit
    if end - p < 4:
        return -1
    for i in range(4):
        digit = hex_value(p[i])
        if digit < 0:
            return -1
        result = result << 4 | digit
    return result


cdef int read_escape(const uint8_t* p, const uint8_t* end, uint8_t* out, int* step) noexcept nogil:
    # Writes the bytes that an escape stands for, and returns how many. `step` is the escape's size, or 0 if it is none.
    cdef int code, low
    step[0] = 0
    if end - p < 2:
        return 0
    if p[1] != b"u":
        out[0] = short_escape(p[1])
        step[0] = 2 if out[0] else 0
        return 1
    code = read_hex(p + 2, end)
    if code < 0 or 0xDC00 <= code < 0xE000:
        return 0
    step[0] = 6
    if 0xD800 <= code < 0xDC00:
        low = read_hex(p + 8, end) if end - p >= 12 and p[6] == b"\\" and p[7] == b"u" else -1
        step[0] = 12 if 0xDC00 <= low < 0xE000 else 0
        code = 0x10000 + ((code - 0xD800) << 10) + low - 0xDC00
    return write_utf8(out, code) if step[0] else 0


cdef inline uint8_t short_escape(uint8_t byte) noexcept nogil:
    if byte == b"n":
        return 10
    elif byte == b"t":
        return 9
    elif byte == b"r":
        return 13
    elif byte == b"b":
        return 8
    elif byte == b"f":
        return 12
    return byte if byte == b'"' or byte == b"\\" or byte == b"/" else 0


cdef inline int write_utf8(uint8_t* out, int code) noexcept nogil:
    if code < 0x80:
        out[0] = <uint8_t>code
        return 1
    if code < 0x800:
        out[0] = <uint8_t>(0xC0 | code >> 6)
        out[1] = <uint8_t>(0x80 | (code & 0x3F))
        return 2
    if code < 0x10000:
        out[0] = <uint8_t>(0xE0 | code >> 12)
        out[1] = <uint8_t>(0x80 | (code >> 6 & 0x3F))
        out[2] = <uint8_t>(0x80 | (code & 0x3F))
        return 3
    out[0] = <uint8_t>(0xF0 | code >> 18)
    out[1] = <uint8_t>(0x80 | (code >> 12 & 0x3F))
    out[2] = <uint8_t>(0x80 | (code >> 6 & 0x3F))
    out[3] = <uint8_t>(0x80 | (code & 0x3F))
    return 4
