# cython: language_level=3
"""Which form a leaf's values have, in Arrow's memory and in a page."""

from libc.stdint cimport uint8_t, uint64_t

from archiver.storage.parquet.columns.texts cimport word_at

cdef extern from *:
    """
    typedef __int128 wide_integer;
    static inline wide_integer joined(uint64_t high, uint64_t low) {
        return (wide_integer)((unsigned __int128)high << 64 | low);
    }
    """
    ctypedef long long wide_integer     # 128 bits
    wide_integer joined(uint64_t, uint64_t) nogil

cdef enum:                  # in Arrow
    AS_BITS = 0             # booleans
    AS_WORDS = 1            # numbers of 4 or 8 bytes
    AS_TEXTS = 2            # with offsets of 32 bits
    AS_LARGE_TEXTS = 3
    AS_FIXED = 4            # so many bytes each
    AS_DECIMALS = 5         # integers of 128 bits

cdef enum:                  # how values compare
    BY_NUMBER = 0
    BY_FLOAT = 1            # 4 or 8 bytes
    BY_BYTES = 2
    BY_DECIMAL = 3

cdef enum:                  # physical types, in parquet.thrift
    BOOLEAN = 0
    INT32 = 1
    INT64 = 2
    FLOAT = 4
    DOUBLE = 5
    BYTE_ARRAY = 6
    FIXED_LEN_BYTE_ARRAY = 7

cdef enum:
    DECIMAL_WIDTH = 16      # in Arrow


cdef struct Form:
    int memory
    int order
    int type
    int width               # of a value in a page, in bytes; 0 for texts


cdef inline wide_integer decimal_at(const uint8_t* at) noexcept nogil:
    return joined(word_at(at + 8), word_at(at))


cdef inline void decimal_bytes(wide_integer number, int width, uint8_t* at) noexcept nogil:
    """The last `width` bytes of the number, the highest first."""
    cdef int index
    for index in range(width):
        at[width - 1 - index] = <uint8_t>(number & 0xFF)
        number >>= 8
