# cython: language_level=3
"""Split-block bloom filters (BloomFilter.md), by XXH64 with the seed 0 (doc/xxhash_spec.md of Cyan4973/xxHash)."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from archiver.storage.parquet.columns.texts cimport Text, half_at, word_at

cdef extern from *:
    """
    #define XXH_FIRST 0x9E3779B185EBCA87ull
    #define XXH_SECOND 0xC2B2AE3D27D4EB4Full
    #define XXH_THIRD 0x165667B19E3779F9ull
    #define XXH_FOURTH 0x85EBCA77C2B2AE63ull
    #define XXH_FIFTH 0x27D4EB2F165667C5ull
    static const uint32_t filter_salts[8] = {
        0x47b6137bu, 0x44974d91u, 0x8824ad5bu, 0xa2b7289du, 0x705495c7u, 0x2df1424bu, 0x9efc4947u, 0x5c6bfb31u};
    """
    const uint64_t XXH_FIRST, XXH_SECOND, XXH_THIRD, XXH_FOURTH, XXH_FIFTH
    const uint32_t filter_salts[8]

cdef enum:
    FILTER_BLOCK = 32       # bytes
    FILTER_WORDS = 8        # of a block
    STRIPE = 32             # bytes that the hash takes at once


cdef inline uint64_t rotated(uint64_t word, int bits) noexcept nogil:
    return word << bits | word >> (64 - bits)


cdef inline uint64_t _round(uint64_t lane, uint64_t word) noexcept nogil:
    return rotated(lane + word * XXH_SECOND, 31) * XXH_FIRST


cdef inline uint64_t _merged(uint64_t hash, uint64_t lane) noexcept nogil:
    return (hash ^ _round(0, lane)) * XXH_FIRST + XXH_FOURTH


cdef inline uint64_t _stripes(const uint8_t* at, int64_t count) noexcept nogil:
    cdef uint64_t one = XXH_FIRST + XXH_SECOND, two = XXH_SECOND, three = 0, four = 0 - XXH_FIRST, hash
    while count:
        one = _round(one, word_at(at))
        two = _round(two, word_at(at + 8))
        three = _round(three, word_at(at + 16))
        four = _round(four, word_at(at + 24))
        at += STRIPE
        count -= 1
    hash = rotated(one, 1) + rotated(two, 7) + rotated(three, 12) + rotated(four, 18)
    return _merged(_merged(_merged(_merged(hash, one), two), three), four)


cdef inline uint64_t xxh64(Text text) noexcept nogil:
    cdef const uint8_t* at = text.at
    cdef int64_t left = text.size
    cdef uint64_t hash = XXH_FIFTH
    if left >= STRIPE:
        hash = _stripes(at, left // STRIPE)
        at += left & ~(STRIPE - 1)
        left &= STRIPE - 1
    hash += <uint64_t>text.size
    while left >= 8:
        hash = rotated(hash ^ _round(0, word_at(at)), 27) * XXH_FIRST + XXH_FOURTH
        at += 8
        left -= 8
    if left >= 4:
        hash = rotated(hash ^ half_at(at) * XXH_FIRST, 23) * XXH_SECOND + XXH_THIRD
        at += 4
        left -= 4
    while left:
        hash = rotated(hash ^ at[0] * XXH_FIFTH, 11) * XXH_FIRST
        at += 1
        left -= 1
    hash = (hash ^ hash >> 33) * XXH_SECOND
    hash = (hash ^ hash >> 29) * XXH_THIRD
    return hash ^ hash >> 32


cdef inline void add_to_filter(uint8_t* filter, int64_t size, Text value) noexcept nogil:
    """Set the bits of a value, which is as plain encoding has it. `size` is the filter's, a multiple of a block."""
    cdef uint64_t hash = xxh64(value), blocks = <uint64_t>size // FILTER_BLOCK
    cdef uint32_t* words = <uint32_t*>(filter + ((hash >> 32) * blocks >> 32) * FILTER_BLOCK)
    cdef int index
    for index in range(FILTER_WORDS):
        words[index] |= <uint32_t>1 << (<uint32_t>hash * filter_salts[index] >> 27)
