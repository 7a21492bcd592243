# cython: language_level=3
"""Bounds of texts that are too long to be stored: cut, and the upper one raised. Text stays valid UTF-8."""

from libc.stdint cimport int64_t, uint32_t, uint8_t

from archiver.storage.parquet.columns.growing_bytes cimport Bytes, put, put_byte
from archiver.storage.parquet.columns.texts cimport Text

cdef enum:
    CUT_BOUND = 64              # bytes, as in parquet-java and arrow-rs
    LAST_CODE = 0x10FFFF
    SURROGATES = 0xD800
    AFTER_SURROGATES = 0xE000


cdef inline bint _continues(uint8_t byte) noexcept nogil:
    """Whether a byte is inside a character."""
    return byte & 0xC0 == 0x80


cdef inline int64_t start_of(Text text) noexcept nogil:
    """How many bytes a cut text keeps: whole characters, if it has any. The text is longer than CUT_BOUND."""
    cdef int64_t size
    for size in range(CUT_BOUND, CUT_BOUND - 4, -1):
        if not _continues(text.at[size]):
            return size
    return CUT_BOUND


cdef inline int _last_character(const uint8_t* at, int64_t size, uint32_t* code) noexcept nogil:
    """How many bytes the last character takes. 0 if the bytes don't end with a character of UTF-8."""
    cdef int count = 1, index
    cdef uint8_t first
    while count < 4 and count < size and _continues(at[size - count]):
        count += 1
    first = at[size - count]
    if first < 0x80:
        code[0] = first
        return 1 if count == 1 else 0
    if first < 0xC2 or first > 0xF4 or count != 2 + (first >= 0xE0) + (first >= 0xF0):
        return 0
    code[0] = first & (0x7F >> count)
    for index in range(1, count):
        code[0] = code[0] << 6 | (at[size - count + index] & 0x3F)
    if count == 3 and (code[0] < 0x800 or SURROGATES <= code[0] < AFTER_SURROGATES):
        return 0
    if count == 4 and (code[0] < 0x10000 or code[0] > LAST_CODE):
        return 0
    return count


cdef inline int _put_character(Bytes* out, uint32_t code) except -1 nogil:
    if code < 0x80:
        return put_byte(out, <uint8_t>code)
    if code < 0x800:
        put_byte(out, <uint8_t>(0xC0 | code >> 6))
    else:
        if code < 0x10000:
            put_byte(out, <uint8_t>(0xE0 | code >> 12))
        else:
            put_byte(out, <uint8_t>(0xF0 | code >> 18))
            put_byte(out, <uint8_t>(0x80 | code >> 12 & 0x3F))
        put_byte(out, <uint8_t>(0x80 | code >> 6 & 0x3F))
    return put_byte(out, <uint8_t>(0x80 | code & 0x3F))


cdef inline int put_above(Bytes* out, Text text) except -1 nogil:
    """Put a short text above all that begin as this one. 0 if there is none: all bytes are the highest.

    No character's bytes are the beginning of another's, so the next character is above in bytes that aren't text, too.
    """
    cdef int64_t size = start_of(text)
    cdef uint32_t code = 0
    cdef int last
    while size > 0:
        last = _last_character(text.at, size, &code)
        if last and code < LAST_CODE:
            put(out, text.at, size - last)
            _put_character(out, AFTER_SURROGATES if code + 1 == SURROGATES else code + 1)
            return 1
        if not last and text.at[size - 1] < 0xFF:
            put(out, text.at, size - 1)
            put_byte(out, <uint8_t>(text.at[size - 1] + 1))
            return 1
        size -= max(last, 1)
    return 0
