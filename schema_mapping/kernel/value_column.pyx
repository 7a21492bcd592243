# cython: language_level=3
"""A binary column to decode. `writers` are indexes of types; -1 is a null value."""

cimport cython
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t


@cython.final
cdef class ValueColumn:
    def __init__(self, *, size_t validity, size_t offsets, size_t data, size_t prefixes, size_t writers, int64_t start,
                 int64_t length, bint large):
        self.validity = <const uint8_t*>validity
        self.offsets = <const void*>offsets
        self.data = <const uint8_t*>data
        self.prefixes = <const int32_t*>prefixes
        self.writers = <const int16_t*>writers
        self.start = start
        self.length = length
        self.large = large
