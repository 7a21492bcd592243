# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, nonecheck=False
"""Looks up values in blocks of split-block bloom filters (BloomFilter.md), and hashes columns as these do."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from archiver.storage.parquet.columns.bloom_filter cimport FILTER_BLOCK, FILTER_WORDS, filter_salts, xxh64
from archiver.storage.parquet.columns.texts cimport Text, half_at


cdef inline uint64_t _hash(bytes value):
    cdef Text text
    text.at, text.size = <const uint8_t*>value, len(value)
    return xxh64(text)


def block_start(bytes value, uint64_t filter_bytes):
    """Return the start of a value's block in the bits of a filter. The value is as plain encoding has it."""
    return ((_hash(value) >> 32) * (filter_bytes // FILTER_BLOCK) >> 32) * FILTER_BLOCK


def may_contain(bytes block, bytes value):
    """Whether a filter may contain a value, by the 32 bytes of its block. Raises ValueError for another size."""
    if len(block) != FILTER_BLOCK:
        raise ValueError("a block of a bloom filter has 32 bytes")
    cdef const uint8_t* at = block
    cdef uint64_t hash = _hash(value)
    cdef int index
    for index in range(FILTER_WORDS):
        if not half_at(at + 4 * index) >> (<uint32_t>(<uint32_t>hash * filter_salts[index]) >> 27) & 1:
            return False
    return True


def text_hashes(const int64_t[::1] offsets, const uint8_t[::1] octets, uint64_t[::1] hashes):
    """Write the XXH64 of each text, which lies between two offsets. Raises ValueError for offsets outside."""
    cdef int64_t count = hashes.shape[0], index
    cdef Text text
    cdef const uint8_t* start = &octets[0] if octets.shape[0] else NULL
    if offsets.shape[0] != count + 1:
        raise ValueError("texts need an offset more than hashes")
    with nogil:
        for index in range(count):
            if not 0 <= offsets[index] <= offsets[index + 1] <= octets.shape[0]:
                break
            text.at, text.size = start + offsets[index], offsets[index + 1] - offsets[index]
            hashes[index] = xxh64(text)
        else:
            index = count
    if index != count:
        raise ValueError("an offset of a text is outside of its bytes")
