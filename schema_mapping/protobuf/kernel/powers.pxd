# Powers of ten in 128 bits.

from libc.stdint cimport int64_t, uint64_t

cdef extern from *:
    ctypedef unsigned long long uint128 "unsigned __int128"

cdef enum:
    LEAST_POWER = -292
    MOST_POWER = 324

# 10**k is equal to (high * 2**64 + low) * 2**(log2_of_power(k) - 127), or a little less.
cdef struct Power:
    uint64_t high
    uint64_t low

cdef const Power* power_of_ten(int k) noexcept nogil


cdef inline int log2_of_power(int k) noexcept nogil:
    # floor(log2(10**k))
    return <int>((<int64_t>k * 1741647) >> 19)
