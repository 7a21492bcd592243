# cython: language_level=3
"""Byte strings where they lie in Arrow's memory: hashes, comparison."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy

cdef extern from *:
    """
    #define swapped_64(x) __builtin_bswap64(x)
    static inline uint64_t folded(uint64_t one, uint64_t other) {
        unsigned __int128 product = (unsigned __int128)one * other;
        return (uint64_t)product ^ (uint64_t)(product >> 64);
    }
    """
    uint64_t swapped_64(uint64_t) nogil
    uint64_t folded(uint64_t, uint64_t) nogil   # both halves of the product, one over the other


cdef struct Text:
    const uint8_t* at
    int64_t size


cdef inline uint64_t word_at(const uint8_t* at) noexcept nogil:
    cdef uint64_t word
    memcpy(&word, at, 8)
    return word


cdef inline uint64_t half_at(const uint8_t* at) noexcept nogil:
    cdef uint32_t half
    memcpy(&half, at, 4)
    return half


cdef inline uint64_t short_word(const uint8_t* at, int64_t size) noexcept nogil:
    """The bytes of a text shorter than 8, in one word. Texts of one size have different words."""
    if size >= 4:
        return half_at(at) | half_at(at + size - 4) << 32
    if size == 0:
        return 0
    return at[0] | <uint64_t>at[size >> 1] << 8 | <uint64_t>at[size - 1] << 16


cdef inline uint64_t mixed(uint64_t word, uint64_t key) noexcept nogil:
    """A hash of the word. Nobody who doesn't know the key can choose words whose hashes meet."""
    return folded(word ^ key, <uint64_t>0x9E3779B97F4A7C15 ^ key << 1)


cdef inline uint64_t hashed(Text text, uint64_t key) noexcept nogil:
    cdef uint64_t found = key + <uint64_t>text.size * <uint64_t>0xD6E8FEB86659FD93
    cdef int64_t at = 0
    if text.size < 8:
        return mixed(found ^ short_word(text.at, text.size), key)
    while at + 8 < text.size:
        found = mixed(found ^ word_at(text.at + at), key)
        at += 8
    return mixed(found ^ word_at(text.at + text.size - 8), key)


cdef inline bint are_equal(Text one, Text other) noexcept nogil:
    if one.size != other.size:
        return False
    if one.size < 8:
        return short_word(one.at, one.size) == short_word(other.at, other.size)
    if one.size <= 16:
        return (word_at(one.at) == word_at(other.at)
                and word_at(one.at + one.size - 8) == word_at(other.at + other.size - 8))
    return memcmp(one.at, other.at, <size_t>one.size) == 0


cdef inline uint64_t beginning(Text text) noexcept nogil:
    """The first 8 bytes as a number that compares as they do. Missing ones are zeros."""
    cdef uint64_t word = 0
    if text.size >= 8:
        return swapped_64(word_at(text.at))
    if text.size:
        memcpy(&word, text.at, <size_t>text.size)
    return swapped_64(word)


cdef inline int compared(Text one, Text other) noexcept nogil:
    """Below zero, zero or above it, as `one` is less than `other`, equal or greater; bytes are unsigned."""
    cdef int found = memcmp(one.at, other.at, <size_t>min(one.size, other.size)) if one.size and other.size else 0
    if found:
        return found
    return (one.size > other.size) - (one.size < other.size)
