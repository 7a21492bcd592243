# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The powers of ten in the range of doubles, in 128 bits, rounded up. They are computed when the module is loaded."""

from libc.stdint cimport uint64_t

cdef Power POWERS[MOST_POWER - LEAST_POWER + 1]


cdef void fill_powers() except *:
    # Computes with Python's integers.
    cdef object ten = 10
    cdef object shift, above, below, scaled
    cdef int k
    for k in range(LEAST_POWER, MOST_POWER + 1):
        shift = 127 - log2_of_power(k)
        above = ten ** max(k, 0) << max(shift, 0)
        below = ten ** max(-k, 0) << max(-shift, 0)
        scaled = -(-above // below)
        POWERS[k - LEAST_POWER].high = scaled >> 64
        POWERS[k - LEAST_POWER].low = scaled & 0xFFFFFFFFFFFFFFFF


fill_powers()


cdef const Power* power_of_ten(int k) noexcept nogil:
    return &POWERS[k - LEAST_POWER]
