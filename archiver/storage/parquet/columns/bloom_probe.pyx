# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, nonecheck=False
"""Looks up values in blocks of split-block bloom filters (BloomFilter.md)."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t

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
